/* command: model */
/*
 * A collector gives a node back before its unlinking is persistent: after a crash it is both in the
 * list and free, and is handed out while it is in use.
 */
#include "../pm.h"

enum { NODES = 4 };

struct node {
	_Alignas(64) volatile uint64_t next; /* index + 1 */
	volatile uint64_t free;
};

struct pm {
	_Alignas(64) volatile uint64_t head;
	struct node node[NODES];
};

static void collect(struct pm *pm, uint64_t index)
{
	WHEN_BUGGY(pm->node[index].free = 1; PERSIST(&pm->node[index]);)
	pm->head = pm->node[index].next;
	PERSIST((void *)&pm->head);
	WHEN_FIXED(pm->node[index].free = 1; PERSIST(&pm->node[index]);)
}

int main(int argc, char **argv)
{
	struct pm *pm = pm_map(argv);

	(void)argc;
	if (pm->head) {
		for (uint64_t at = pm->head; at; at = pm->node[at - 1].next)
			if (pm->node[at - 1].free)
				abort(); /* expect: crash-symptom */
		return 0;
	}
	for (uint64_t i = 0; i + 1 < NODES; i++) {
		pm->node[i].next = i + 2;
		PERSIST(&pm->node[i]);
	}
	pm->head = 1;
	PERSIST((void *)&pm->head);
	collect(pm, 0);
	return 0;
}
