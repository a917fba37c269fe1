/* command: model */
/*
 * An object is published before what its constructor has set is persistent: the class of most bugs
 * that Jaaru found in RECIPE's indexes.
 */
#include "../pm.h"

struct node {
	_Alignas(64) uint64_t count;
	uint64_t *slots; /* into the same pool; null is no table at all */
};

struct pm {
	_Alignas(64) struct node *volatile root;
	_Alignas(64) struct node node;
	_Alignas(64) uint64_t slots[8];
};

static void construct(struct pm *pm)
{
	pm->node.count = 8;
	pm->node.slots = pm->slots;
	WHEN_FIXED(PERSIST(&pm->node);)
	pm->root = &pm->node;
	PERSIST((void *)&pm->root);
	WHEN_BUGGY(PERSIST(&pm->node);)
}

int main(int argc, char **argv)
{
	struct pm *pm = pm_map(argv);
	uint64_t sum = 0;

	(void)argc;
	if (!pm->root) {
		construct(pm);
		return 0;
	}
	for (uint64_t i = 0; i < pm->root->count; i++) /* expect: cross-failure-race */
		sum += pm->root->slots[i]; /* expect: crash-symptom cross-failure-race */
	return sum == 12345;
}
