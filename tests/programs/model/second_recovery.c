/* command: model */
/* options: --crashes 2 */
/*
 * Recovery rebuilds a sum and says that it has, but does not flush it: a second crash may keep the one and
 * lose the other. The program itself loses nothing.
 */
#include "../pm.h"

struct pm {
	_Alignas(64) volatile uint64_t state; /* 1: filled in, 2: the sum is there as well */
	_Alignas(64) uint64_t value[4];
	_Alignas(64) uint64_t sum;
};

static void rebuild(struct pm *pm)
{
	uint64_t sum = 0;

	for (int i = 0; i < 4; i++)
		sum += pm->value[i];
	pm->sum = sum; /* expect: missing-flush */
	WHEN_FIXED(PERSIST(&pm->sum);)
	pm->state = 2;
	PERSIST((void *)&pm->state);
}

int main(int argc, char **argv)
{
	struct pm *pm = pm_map(argv);

	(void)argc;
	if (pm->state == 1)
		rebuild(pm);
	else if (pm->state == 2 && pm->sum != 10) /* expect: cross-failure-race */
		abort();                          /* expect: crash-symptom */
	if (pm->state)
		return 0;
	for (int i = 0; i < 4; i++)
		pm->value[i] = i + 1;
	PERSIST(pm->value);
	pm->state = 1;
	PERSIST((void *)&pm->state);
	return 0;
}
