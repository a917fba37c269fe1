/* perdure-cc: functions of other code are not hooked */
/* command: model */
/* options: --verifier is_valid */
/*
 * A log of records with checksums and no commit variable: recovery takes records until one is not
 * valid. --verifier names the function that tells, and what it reads is found new, old, or torn, and
 * not in each of 2^16 ways. The bug: the checksum leaves the last line out.
 */
#include "../pm.h"

enum { WORDS = 120, RECORDS = 2 };

struct record {
	_Alignas(64) uint64_t sum;
	uint64_t word[WORDS];
};

static uint64_t sum_of(const struct record *record)
{
	uint64_t sum = 1;

	for (int i = 0; i < WORDS WHEN_BUGGY(- 8); i++)
		sum = sum * 31 + record->word[i];
	return sum;
}

static __attribute__((noinline)) int is_valid(const struct record *record)
{
	return record->sum == sum_of(record);
}

int main(int argc, char **argv)
{
	struct record *log = pm_map(argv);
	int valid = 0;

	(void)argc;
	while (valid < RECORDS && is_valid(&log[valid]))
		valid++;
	for (int i = 0; i < valid; i++)
		for (int k = 0; k < WORDS; k++)
			if (log[i].word[k] != (uint64_t)i + k + 1) /* expect: cross-failure-race */
				abort(); /* expect: crash-symptom */
	if (valid)
		return 0;
	for (int i = 0; i < RECORDS; i++) {
		for (int k = 0; k < WORDS; k++)
			log[i].word[k] = i + k + 1;
		log[i].sum = sum_of(&log[i]);
		for (unsigned k = 0; k < sizeof(*log); k += 64)
			CLWB((char *)&log[i] + k);
		SFENCE();
	}
	return 0;
}
