/* perdure-cc: only a compiler knows what it may tear */
/* command: check */
/* options: --disable cross-failure-race */
/*
 * Condition 2 of the theorem alone: y shares a line with x and is read first, but only a store that releases
 * says that x is complete.
 */
#include "../pm.h"

struct pm {
	_Alignas(64) uint64_t x;
	uint64_t y;
};

int main(int argc, char **argv)
{
	struct pm *pm = pm_map(argv);

	(void)argc;
	if (__atomic_load_n(&pm->y, __ATOMIC_ACQUIRE))
		return pm->x != 1; /* expect: torn-store */
	pm->x = 1;
#ifdef FIXED
	__atomic_store_n(&pm->y, 1, __ATOMIC_RELEASE);
#else
	__atomic_store_n(&pm->y, 1, __ATOMIC_RELAXED);
#endif
	PERSIST(&pm->y);
	return 0;
}
