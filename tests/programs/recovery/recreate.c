/* command: check */
/* A recovery that finds a file which was never finished removes it and starts again. */
#include "../pm.h"

struct pm {
	_Alignas(64) uint64_t data;
	_Alignas(64) _Atomic uint64_t magic;
};

int main(int argc, char **argv)
{
	struct pm *pm = pm_map(argv);

	(void)argc;
	if (pm->magic != 7) {
		munmap(pm, PM_SIZE);
		WHEN_FIXED(unlink(argv[1]);)
		pm = pm_map(argv);
	}
	if (pm->data != 0 && pm->data != 5) /* expect: cross-failure-race */
		abort();
	pm->data = 5;
	PERSIST(&pm->data);
	pm->magic = 7;
	PERSIST(&pm->magic);
	return 0;
}
