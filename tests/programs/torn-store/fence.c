/* perdure-cc: only a compiler knows what it may tear */
/* command: check */
/* options: --disable cross-failure-race --disable missing-fence --disable redundant-fence */
/*
 * Condition 4 alone: x is written back with clwb before y is stored, but only a fence in between makes that
 * certain.
 */
#include "../pm.h"

struct pm {
	_Alignas(64) uint64_t x;
	_Alignas(64) volatile uint64_t y;
};

int main(int argc, char **argv)
{
	struct pm *pm = pm_map(argv);

	(void)argc;
	if (pm->y)
		return pm->x > 1; /* expect: torn-store */
	pm->x = 1;
	CLWB(&pm->x);
	WHEN_FIXED(SFENCE();)
	pm->y = 1;
	PERSIST((void *)&pm->y);
	return 0;
}
