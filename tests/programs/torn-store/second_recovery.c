/* perdure-cc: only a compiler knows what it may tear */
/* command: model */
/* options: --crashes 2 --disable cross-failure-race */
/*
 * A recovery stores a value and flushes it; a second crash may leave half of it for the next one. Fixed: that
 * one first reads a flag that was stored after the flush.
 */
#include "../pm.h"

#include <perdure/perdure.h>

struct pm {
	_Alignas(64) volatile uint64_t made;
	_Alignas(64) uint64_t value;
	_Alignas(64) volatile uint64_t flag;
};

int main(int argc, char **argv)
{
	struct pm *pm = pm_map(argv);

	(void)argc;
	if (perdure_stage() == 0) {
		pm->made = 1;
		PERSIST((void *)&pm->made);
		return 0;
	}
	if (perdure_stage() == 2) {
		if (!pm->made WHEN_FIXED(|| !pm->flag))
			return 0;
		return pm->value == 99; /* expect: torn-store */
	}
	if (!pm->made)
		return 0;
	pm->value = 0x1234567812345678;
	PERSIST(&pm->value);
	pm->flag = 1;
	PERSIST((void *)&pm->flag);
	return 0;
}
