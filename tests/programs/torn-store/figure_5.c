/* perdure-cc: only a compiler knows what it may tear */
/* command: check */
/* options: --disable cross-failure-race */
/*
 * yashme.txt, Figure 5 (a): x and y share a line, and y is released after x. Recovery that has read y's new
 * value knows that x is complete, without any flush. The bug: it reads x first.
 */
#include "../pm.h"

struct pm {
	_Alignas(64) uint64_t x;
	uint64_t y;
};

int main(int argc, char **argv)
{
	struct pm *pm = pm_map(argv);
	uint64_t x, y;

	(void)argc;
#ifdef FIXED
	y = __atomic_load_n(&pm->y, __ATOMIC_ACQUIRE);
	x = y ? pm->x : 0;
#else
	x = pm->x; /* expect: torn-store */
	y = __atomic_load_n(&pm->y, __ATOMIC_ACQUIRE);
#endif
	if (x || y)
		return x + y > 2;
	pm->x = 1;
	__atomic_store_n(&pm->y, 1, __ATOMIC_RELEASE);
	PERSIST(&pm->y);
	return 0;
}
