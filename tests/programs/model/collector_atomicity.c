/* command: model */
/*
 * A collector moves a node from the list of garbage to the list of free nodes. Everything is flushed at
 * once, but a crash between the two steps leaves the node in both lists, or in none: no flush is missing,
 * but atomicity. Fixed: an intention, written first, lets recovery finish what was begun.
 */
#include "../pm.h"

enum { NODES = 3 };

struct pm {
	_Alignas(64) volatile uint64_t made;
	_Alignas(64) volatile uint64_t garbage; /* index + 1 */
	_Alignas(64) volatile uint64_t free;
	_Alignas(64) volatile uint64_t moving; /* index + 1 */
	struct {
		_Alignas(64) volatile uint64_t next;
	} node[NODES];
};

static void finish(struct pm *pm, uint64_t index)
{
	if (pm->garbage == index + 1) {
		pm->garbage = pm->node[index].next;
		PERSIST((void *)&pm->garbage);
	}
	if (pm->free != index + 1) {
		pm->node[index].next = pm->free;
		PERSIST((void *)&pm->node[index]);
		pm->free = index + 1;
		PERSIST((void *)&pm->free);
	}
}

static void collect(struct pm *pm)
{
	uint64_t index = pm->garbage - 1;

	WHEN_FIXED(pm->moving = index + 1; PERSIST((void *)&pm->moving);)
	finish(pm, index);
	WHEN_FIXED(pm->moving = 0; PERSIST((void *)&pm->moving);)
}

static unsigned length(const struct pm *pm, uint64_t at)
{
	unsigned count = 0;

	for (; at; at = pm->node[at - 1].next)
		count++;
	return count;
}

int main(int argc, char **argv)
{
	struct pm *pm = pm_map(argv);

	(void)argc;
	if (pm->made) {
		if (pm->moving) {
			finish(pm, pm->moving - 1);
			pm->moving = 0;
		}
		if (length(pm, pm->garbage) + length(pm, pm->free) != NODES)
			abort(); /* expect: crash-symptom */
		return 0;
	}
	for (uint64_t i = 0; i + 1 < NODES; i++) {
		pm->node[i].next = i + 2;
		PERSIST((void *)&pm->node[i]);
	}
	pm->garbage = 1;
	PERSIST((void *)&pm->garbage);
	pm->made = 1;
	PERSIST((void *)&pm->made);
	collect(pm);
	return 0;
}
