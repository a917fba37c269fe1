/* command: check */
/*
 * What was stored to a line before something that recovery sees there is persistent, too: a line is
 * written back as a whole. That is no bug; on another line it is one.
 */
#include "../pm.h"

struct pm {
	_Alignas(64) uint64_t data;
	WHEN_BUGGY(_Alignas(64)) _Atomic uint64_t valid;
};

int main(int argc, char **argv)
{
	struct pm *pm = pm_map(argv);

	(void)argc;
	if (pm->valid && pm->data != 7) /* expect: cross-failure-race */
		return 1;
	pm->data = 7;
	__atomic_store_n((uint64_t *)&pm->valid, 1, __ATOMIC_RELEASE);
	CLWB(&pm->data);
	PERSIST(&pm->valid);
	return 0;
}
/* options: --disable redundant-flush */
