/* perdure-cc: it finds the header */
/* command: check */
/* xfdetector.txt, Figure 2: the flag that makes the backup valid has the wrong sense. */
#include "../pm.h"

#include "xfdetector_interface.h"

struct pm {
	_Alignas(64) int index;
	int backup;
	_Alignas(64) int valid;
	_Alignas(64) int array[16];
};

static void update(struct pm *pm, int index, int item)
{
	pm->index = index;
	pm->backup = pm->array[index];
	PERSIST(&pm->index);
	pm->valid = WHEN_FIXED(1) WHEN_BUGGY(0);
	PERSIST(&pm->valid);
	pm->array[index] = item;
	PERSIST(&pm->array[index]);
	pm->valid = WHEN_FIXED(0) WHEN_BUGGY(1);
	PERSIST(&pm->valid);
}

static void recover(struct pm *pm)
{
	if (pm->valid) {
		pm->array[pm->index] = pm->backup; /* expect: cross-failure-race cross-failure-semantic */
		PERSIST(&pm->array[pm->index]);
	}
}

int main(int argc, char **argv)
{
	struct pm *pm = pm_map(argv);
	int sum = 0;

	(void)argc;
	XFDetector_addCommitVar(&pm->valid, sizeof(pm->valid));
	if (perdure_stage() == 0) {
		for (int i = 0; i < 4; i++)
			update(pm, i, i + 1);
		return 0;
	}
	recover(pm);
	for (int i = 0; i < 16; i++)
		sum += pm->array[i]; /* expect: cross-failure-race cross-failure-semantic */
	return sum == 12345;
}
