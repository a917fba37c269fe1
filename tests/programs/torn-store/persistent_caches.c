/* perdure-cc: only a compiler knows what it may tear */
/* command: check */
/* options: --model eadr */
/*
 * With persistent caches no flush is needed, but a store can still be made in several steps. Fixed: recovery
 * first reads a flag, in whatever line, that was released after the store.
 */
#include "../pm.h"

struct pm {
	_Alignas(64) uint64_t value;
	_Alignas(64) uint64_t flag;
};

int main(int argc, char **argv)
{
	struct pm *pm = pm_map(argv);

	(void)argc;
	WHEN_FIXED(if (__atomic_load_n(&pm->flag, __ATOMIC_ACQUIRE)))
	if (pm->value) /* expect: torn-store */
		return 0;
	if (__atomic_load_n(&pm->flag, __ATOMIC_ACQUIRE))
		return 0;
	pm->value = 0x1234567812345678;
	__atomic_store_n(&pm->flag, 1, __ATOMIC_RELEASE);
	return 0;
}
