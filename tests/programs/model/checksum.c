/* command: model */
/*
 * A record of many lines with a checksum, and no flush before it is declared written: recovery reads all
 * of it to find out. Declared, it is found whole, old, or torn, and not in each of 2^16 ways. The bug: the
 * checksum leaves the last line out.
 */
#include "../pm.h"

#include <perdure/perdure.h>

enum { WORDS = 128 };

struct pm {
	_Alignas(64) volatile uint64_t written;
	_Alignas(64) uint64_t sum;
	uint64_t word[WORDS];
};

static uint64_t sum_of(const struct pm *pm)
{
	uint64_t sum = 1;

	for (int i = 0; i < WORDS WHEN_BUGGY(- 8); i++)
		sum = sum * 31 + pm->word[i];
	return sum;
}

int main(int argc, char **argv)
{
	struct pm *pm = pm_map(argv);

	(void)argc;
	perdure_checksum_range(&pm->sum, sizeof(pm->sum) + sizeof(pm->word));
	if (pm->written) {
		perdure_verify_begin();
		if (pm->sum == sum_of(pm) && pm->word[WORDS - 1] != WORDS)
			abort(); /* expect: crash-symptom */
		perdure_verify_end();
		return 0;
	}
	pm->written = 1;
	PERSIST((void *)&pm->written);
	for (int i = 0; i < WORDS; i++)
		pm->word[i] = i + 1;
	pm->sum = sum_of(pm);
	for (int i = 0; i < WORDS + 8; i += 8)
		CLWB((char *)&pm->sum + 8 * i);
	SFENCE();
	return 0;
}
