/* perdure-cc: only a compiler knows what it may tear */
/* command: check */
/* options: --disable cross-failure-race --disable missing-flush --disable transient-data */
/*
 * Condition 3 alone: recovery reads y, stored later, in another line; whether x is complete depends on a
 * clflush between the two. Where it is forgotten, or comes too late, nothing else says so.
 */
/* variants: 2 */
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
		return pm->x > 1; /* expect-1: torn-store */ /* expect-2: torn-store */
	pm->x = 1;
#if BUG == 0
	CLFLUSH(&pm->x);
#endif
	pm->y = 1;
#if BUG == 2
	CLFLUSH(&pm->x);
#endif
	PERSIST((void *)&pm->y);
	return 0;
}
