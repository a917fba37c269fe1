/* command: model */
/* options: --timeout 1 */
/*
 * A directory of hash segments is published before its depth is persistent: recovery doubles it until it
 * is deep enough, and never is.
 */
#include "../pm.h"

enum { DEPTH = 3 };

struct directory {
	_Alignas(64) uint64_t depth;
};

struct pm {
	_Alignas(64) struct directory *volatile directory;
	struct directory first;
};

static void construct(struct directory *directory)
{
	directory->depth = 1; /* expect: missing-flush */
	WHEN_FIXED(PERSIST(directory);)
}

static uint64_t segments(const volatile struct directory *directory)
{
	volatile uint64_t depth = directory->depth; /* expect: cross-failure-race */

	while (depth < DEPTH) depth *= 2; /* expect: crash-symptom */
	return depth;
}

int main(int argc, char **argv)
{
	struct pm *pm = pm_map(argv);

	(void)argc;
	if (pm->directory)
		return segments(pm->directory) == 0;
	construct(&pm->first);
	pm->directory = &pm->first;
	PERSIST((void *)&pm->directory);
	return 0;
}
