/* perdure-cc: only a compiler knows what it may tear */
/* command: check */
/*
 * yashme.txt, Figure 1: a value is stored and then flushed; recovery prints it. The compiler may store it
 * in two steps, and a crash in between leaves half of it. Fixed: the store is atomic.
 */
#include "../pm.h"

struct object {
	_Alignas(64) uint64_t value;
};

int main(int argc, char **argv)
{
	struct object *object = pm_map(argv);
	uint64_t value = __atomic_load_n(&object->value, __ATOMIC_ACQUIRE); /* expect: torn-store cross-failure-race */

	(void)argc;
	if (value != 0) {
		printf("%lx\n", value);
		return 0;
	}
#ifdef FIXED
	__atomic_store_n(&object->value, 0x1234567812345678, __ATOMIC_RELEASE);
#else
	object->value = 0x1234567812345678;
#endif
	PERSIST(&object->value);
	return 0;
}
