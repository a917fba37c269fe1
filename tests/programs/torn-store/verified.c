/* perdure-cc: only a compiler knows what it may tear */
/* command: check */
/* options: --verifier is_valid --disable cross-failure-race */
/*
 * Data that recovery validates before it uses it may be torn: that is what the checksum is for. The bug: one
 * field is used before it is validated.
 */
#include "../pm.h"

struct record {
	_Alignas(64) uint64_t sum;
	uint64_t value, size;
};

__attribute__((noinline)) static int is_valid(const struct record *record)
{
	return record->sum && record->sum == record->value * 31 + record->size;
}

int main(int argc, char **argv)
{
	struct record *record = pm_map(argv);

	(void)argc;
	WHEN_BUGGY(if (record->size > 64) abort();) /* expect: torn-store */
	if (is_valid(record))
		return record->value != 7;
	record->value = 7;
	record->size = 8;
	record->sum = record->value * 31 + record->size;
	PERSIST(record);
	return 0;
}
