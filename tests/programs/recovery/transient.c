/* command: check */
/* Stores that are never flushed: those that recovery reads are a bug, the others are a waste. */
#include "../pm.h"

struct pm {
	_Alignas(64) uint64_t used;
	_Alignas(64) uint64_t cache;
	_Alignas(64) uint64_t wanted;
};

int main(int argc, char **argv)
{
	struct pm *pm = pm_map(argv);

	(void)argc;
	if (pm->used && pm->wanted == 12345) /* expect: cross-failure-race */
		return 1;
	pm->wanted = 5; /* expect: missing-flush */
	WHEN_FIXED(PERSIST(&pm->wanted);)
	WHEN_BUGGY(pm->cache = 6;) /* expect: transient-data */
	__atomic_store_n(&pm->used, 1, __ATOMIC_SEQ_CST);
	PERSIST(&pm->used);
	return 0;
}
