/* command: model */
/* options: --bad-exit 4 */
/*
 * A pool is marked as made before its header is persistent: after a crash it cannot be opened, though
 * all that was ever stored in it is there.
 */
#include "../pm.h"

#define SIGNATURE 0x504f4f4cul

struct pm {
	_Alignas(64) volatile uint64_t made;
	_Alignas(64) volatile uint64_t signature;
	volatile uint64_t version;
};

/* A pool that cannot be opened is nothing that a program can go on with. */
__attribute__((noinline)) static void check_header(const struct pm *pm)
{
	if (pm->signature != SIGNATURE || pm->version != 1)
		exit(4); /* expect: crash-symptom */
}

int main(int argc, char **argv)
{
	struct pm *pm = pm_map(argv);

	(void)argc;
	if (pm->made) {
		check_header(pm);
		return 0;
	}
	pm->signature = SIGNATURE;
	pm->version = 1;
	WHEN_FIXED(PERSIST((void *)&pm->signature);)
	pm->made = 1;
	CLWB((void *)&pm->made);
	WHEN_BUGGY(CLWB((void *)&pm->signature);)
	SFENCE();
	return 0;
}
