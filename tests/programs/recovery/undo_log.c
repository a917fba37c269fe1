/* merged: copies become loads and stores of another line */
/* command: check */
/* variants: 4 */
/*
 * Undo log: the old value is logged, the log is made valid, the value changes in place, the log is
 * made invalid. Recovery puts the old value back.
 */
#include "../pm.h"

struct pm {
	_Alignas(64) uint64_t index;
	uint64_t old;
	_Alignas(64) _Atomic uint64_t valid;
	_Alignas(64) uint64_t value[8];
};

static void update(struct pm *pm, uint64_t index, uint64_t value)
{
	pm->index = index;
	pm->old = pm->value[index];
#if BUG != 1 /* commit before data */
	PERSIST(&pm->index);
#endif
	pm->valid = 1;
	PERSIST(&pm->valid);
	pm->value[index] = value;
#if BUG != 2 /* data after commit */
	PERSIST(&pm->value[index]);
#endif
	pm->valid = 0;
	PERSIST(&pm->valid);
#if BUG == 1
	PERSIST(&pm->index);
#elif BUG == 2
	PERSIST(&pm->value[index]);
#endif
}

static void recover(struct pm *pm)
{
#if BUG == 3 /* recovery does not overwrite */
	uint64_t seen = pm->value[1]; /* expect-3: cross-failure-race */
#endif
	if (!pm->valid)
		return;
	uint64_t index = pm->index; /* expect-1: cross-failure-race */
	uint64_t old = pm->old; /* expect-1: cross-failure-race */

#if BUG == 4 /* it makes the log invalid first, and that is seen only by the next crash */
	pm->valid = 0;
	PERSIST(&pm->valid);
	if (pm->value[index] != old) /* expect-4: cross-failure-race */
		pm->value[index] = old;
#else
	pm->value[index] = old;
#endif
	PERSIST(&pm->value[index]);
	pm->valid = 0;
	PERSIST(&pm->valid);
#if BUG == 3
	if (seen == 77)
		exit(1);
#endif
}

int main(int argc, char **argv)
{
	struct pm *pm = pm_map(argv);
	uint64_t sum = 0;

	(void)argc;
	recover(pm);
	for (int i = 0; i < 8; i++)
		sum += pm->value[i]; /* expect-1: cross-failure-race */ /* expect-2: cross-failure-race */
	update(pm, 1, sum + 1);
	update(pm, 2, sum + 2);
	return 0;
}
