/* command: check */
/* variants: 4 */
/*
 * Two checkpoints in turn; `current` tells which one is complete. Recovery reads that one. The
 * commit variable is declared, with the data it speaks about.
 */
#include "../pm.h"

#include <perdure/perdure.h>

struct pm {
	_Alignas(64) uint64_t current;
	_Alignas(64) uint64_t checkpoint[2][8];
};

static void save(struct pm *pm, uint64_t seed)
{
	uint64_t next = !pm->current;
	uint64_t *data = pm->checkpoint[next];

	for (int i = 0; i < 8; i++)
		data[i] = seed + i;
#if BUG == 1 /* commit before data */
	pm->current = next;
	PERSIST(&pm->current);
	PERSIST(data);
#elif BUG == 2 /* no fence between */
	CLWB(data);
	pm->current = next;
	PERSIST(&pm->current);
#elif BUG == 3 /* data after commit */
	PERSIST(data);
	pm->current = next;
	PERSIST(&pm->current);
	data[7]++;
	PERSIST(data);
#else
	PERSIST(data);
	pm->current = next;
	PERSIST(&pm->current);
#endif
}

int main(int argc, char **argv)
{
	struct pm *pm = pm_map(argv);
	uint64_t sum = 0, *data;

	(void)argc;
	perdure_commit_var(&pm->current, sizeof(pm->current));
	perdure_commit_range(&pm->current, pm->checkpoint, sizeof(pm->checkpoint));
#if BUG == 4 /* the version before the last */
	data = pm->checkpoint[!pm->current];
#else
	data = pm->checkpoint[pm->current];
#endif
	if (perdure_stage() == 0) {
		for (int i = 0; i < 5; i++)
			save(pm, i * 10);
		return 0;
	}
	for (int i = 0; i < 8; i++)
		sum += data[i]; /* expect-1: cross-failure-race cross-failure-semantic */ /* expect-2: cross-failure-race cross-failure-semantic */ /* expect-3: cross-failure-race cross-failure-semantic */ /* expect-4: cross-failure-race cross-failure-semantic */
	return sum == 12345;
}
