/* perdure-cc: only a compiler knows what it may tear */
/* command: check */
/* options: --disable cross-failure-race */
/*
 * yashme.txt, Figure 4 with Figure 6 (a): x is stored and flushed, by clflush or by clwb and a fence, and
 * recovery reads it without having seen anything later: it could have crashed before the flush. Fixed, as
 * in Figure 6 (b): recovery first reads a variable that was stored after the flush.
 */
#include "../pm.h"

struct pm {
	_Alignas(64) uint64_t x;
	_Alignas(64) uint64_t z;
	_Alignas(64) volatile uint64_t after;
};

int main(int argc, char **argv)
{
	struct pm *pm = pm_map(argv);
	uint64_t sum = 0;

	(void)argc;
	WHEN_FIXED(if (pm->after))
	sum += pm->x; /* expect: torn-store */
	WHEN_FIXED(if (pm->after))
	sum += pm->z; /* expect: torn-store */
	if (sum)
		return sum != 3;
	if (pm->after)
		abort();
	pm->x = 1;
	CLFLUSH(&pm->x);
	pm->z = 2;
	CLWB(&pm->z);
	SFENCE();
	pm->after = 1;
	PERSIST((void *)&pm->after);
	return 0;
}
