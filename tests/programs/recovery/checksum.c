/* command: check */
/* variants: 4 */
/*
 * Records with a checksum: recovery reads what is there, and uses it only if the sum is right. The
 * data may be incomplete, so the ranges are declared, or the code that validates them.
 */
#include "../pm.h"

#include <perdure/perdure.h>

struct record {
	_Alignas(64) uint64_t sum;
	uint64_t sequence, payload[14];
};

struct pm {
	struct record record[4];
	_Alignas(64) uint64_t counter;
};

static uint64_t sum_of(const struct record *record)
{
	uint64_t sum = record->sequence * 31 + 17;

	for (int i = 0; i < 14; i++)
		sum = sum * 31 + record->payload[i]; /* expect-1: cross-failure-race */ /* expect-4: cross-failure-race */
	return sum;
}

__attribute__((unused)) static int is_valid(const struct record *record)
{
	int valid;

	perdure_verify_begin();
	valid = record->sequence && record->sum == sum_of(record);
	perdure_verify_end();
	return valid;
}

static void append(struct pm *pm, unsigned slot, uint64_t seed)
{
	struct record *record = &pm->record[slot];

	record->sequence = slot + 1;
	for (int i = 0; i < 14; i++)
		record->payload[i] = seed + i;
	record->sum = sum_of(record);
	CLWB(record);
	PERSIST(&record->payload[13]);
	pm->counter = slot + 1; /* not part of any record */
#if BUG != 3
	PERSIST(&pm->counter);
#endif
}

int main(int argc, char **argv)
{
	struct pm *pm = pm_map(argv);
	uint64_t total = 0;

	(void)argc;
	if (perdure_stage() == 0) {
		for (unsigned i = 0; i < 4; i++)
			append(pm, i, i * 100);
#if BUG == 3
		PERSIST(&pm->counter);
#endif
		return 0;
	}
	for (unsigned i = 0; i < 4; i++) {
#if BUG == 1 /* validated by code that nobody declared */
		if (pm->record[i].sequence && pm->record[i].sum == sum_of(&pm->record[i])) /* expect-1: cross-failure-race */
			total += pm->record[i].payload[0];
#elif BUG == 2 /* used before it is validated */
		total += pm->record[i].payload[0]; /* expect-2: cross-failure-race */
		if (!is_valid(&pm->record[i]))
			break;
#elif BUG == 4 /* the wrong part of it is declared */
		perdure_checksum_range(&pm->record[i], 16);
		if (pm->record[i].sequence && pm->record[i].sum == sum_of(&pm->record[i]))
			total += pm->record[i].payload[0];
#else
		if (is_valid(&pm->record[i]))
			total += pm->record[i].payload[0];
#endif
	}
#if BUG == 3 /* next to the records, without a checksum */
	total += pm->counter; /* expect-3: cross-failure-race */
#endif
	return total == 12345;
}
