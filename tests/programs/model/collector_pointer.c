/* command: model */
/* options: --disable transient-data */
/*
 * The pointer to a collector's own data is never flushed: what is garbage is persistent, where it is
 * listed is not, and a restart cannot give it back.
 */
#include "../pm.h"

struct metadata {
	_Alignas(64) volatile uint64_t epoch;
	volatile uint64_t garbage;
};

struct pm {
	_Alignas(64) volatile uint64_t retired; /* nodes that are no longer reachable */
	_Alignas(64) struct metadata *collector;
	struct metadata metadata;
};

int main(int argc, char **argv)
{
	struct pm *pm = pm_map(argv);

	(void)argc;
	if (pm->retired)
		return pm->collector->garbage == pm->retired ? 0 : 1; /* expect: cross-failure-race crash-symptom */
	pm->metadata.epoch = 1;
	pm->metadata.garbage = 1;
	PERSIST(&pm->metadata);
	pm->collector = &pm->metadata; /* expect: missing-flush */
	WHEN_FIXED(PERSIST(&pm->collector);)
	pm->retired = 1;
	PERSIST((void *)&pm->retired);
	return 0;
}
