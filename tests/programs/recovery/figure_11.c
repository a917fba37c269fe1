/* perdure-cc: it finds the header */
/* command: check */
/* xfdetector.txt, Figure 11: backup and flag are written back together, in any order. */
#include "../pm.h"

#include "xfdetector_interface.h"

struct pm {
	_Alignas(64) int backup;
	_Alignas(64) int valid;
	_Alignas(64) int array[16];
};

static void update(struct pm *pm, int item)
{
	pm->backup = pm->array[0];
	WHEN_FIXED(PERSIST(&pm->backup);)
	pm->valid = 1;
	WHEN_BUGGY(CLWB(&pm->backup);)
	PERSIST(&pm->valid);
	pm->array[0] = item;
	PERSIST(&pm->array[0]);
	pm->valid = 0;
	PERSIST(&pm->valid);
}

int main(int argc, char **argv)
{
	struct pm *pm = pm_map(argv);

	(void)argc;
	XFDetector_addCommitVar(&pm->valid, sizeof(pm->valid));
	if (perdure_stage() == 0) {
		update(pm, 5);
		update(pm, 6);
		return 0;
	}
	if (pm->valid)
		pm->array[0] = pm->backup; /* expect: cross-failure-race cross-failure-semantic */
	return pm->array[0] == 12345;
}
