/* merged: loads of two lines become one */
/* command: check */
/* variants: 4 */
/*
 * Redo log: new values are logged, the log is committed, the values are copied in place, the log is
 * cleared. Recovery copies a committed log again.
 */
#include "../pm.h"

#include <stdatomic.h>

enum { ENTRIES = 3 };

struct pm {
	_Alignas(64) _Atomic uint64_t committed; /* entries; 0: none */
	_Alignas(64) struct {
		uint64_t index, value;
	} log[ENTRIES];
	_Alignas(64) uint64_t value[16];
};

static void apply(struct pm *pm, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		uint64_t index = pm->log[i].index; /* expect-1: cross-failure-race */ /* expect-2: cross-failure-race */

		pm->value[index] = pm->log[i].value; /* expect-1: cross-failure-race */ /* expect-2: cross-failure-race */
#if BUG != 3
		CLWB(&pm->value[index]);
#endif
	}
	SFENCE();
}

static void recover(struct pm *pm)
{
	uint64_t count = pm->committed;

	if (!count)
		return;
#if BUG != 4 /* recovery does not apply the log */
	apply(pm, count);
#endif
	pm->committed = 0;
	PERSIST(&pm->committed);
}

static void update(struct pm *pm, uint64_t seed)
{
	for (uint64_t i = 0; i < ENTRIES; i++) {
		pm->log[i].index = i * 5;
		pm->log[i].value = seed + i;
	}
#if BUG == 1 /* flushed, but the fence comes after the commit */
	CLWB(&pm->log[0]);
#elif BUG == 2 /* not at all before the commit */
#else
	PERSIST(&pm->log[0]);
#endif
	atomic_store_explicit(&pm->committed, ENTRIES, memory_order_release); /* no fence */
	PERSIST(&pm->committed);
#if BUG == 2
	PERSIST(&pm->log[0]);
#endif
	apply(pm, ENTRIES); /* BUG 3: not persistent when the log is cleared */
	pm->committed = 0;
	PERSIST(&pm->committed);
#if BUG == 3
	CLWB(&pm->value[0]);
	CLWB(&pm->value[10]);
	SFENCE();
#endif
}

int main(int argc, char **argv)
{
	struct pm *pm = pm_map(argv);
	uint64_t sum = 0;

	(void)argc;
	recover(pm);
	for (int i = 0; i < 16; i++)
		sum += pm->value[i]; /* expect-3: cross-failure-race */ /* expect-4: cross-failure-race */
	update(pm, sum + 1);
	update(pm, sum + 2);
	return 0;
}
