/* command: check */
/* flags: -lpmemobj */
/* no-pm: libpmemobj maps the pool */
/* model-limit: a prebuilt library writes to PM */
/* model-limit: recoveries depend on more than what they read */
/*
 * xfdetector.txt, Figure 1: the length of a list is changed in a transaction that has not logged it.
 * A recovery that goes on with what it finds there is wrong; one that counts the nodes again, and
 * overwrites the length, is right.
 */
#include "open_pool.h"

struct node {
	uint64_t value;
	PMEMoid next;
	char rest[40];
};

struct root {
	PMEMoid head;
	char rest[48];
	uint64_t length;
};

static void append(PMEMobjpool *pool, struct root *root, uint64_t value)
{
	TX_BEGIN(pool)
	{
		PMEMoid oid = pmemobj_tx_zalloc(sizeof(struct node), 1);
		struct node *node = pmemobj_direct(oid);

		pmemobj_tx_add_range_direct(&root->head, sizeof(root->head));
		node->value = value;
		node->next = root->head;
		root->head = oid;
		root->length++; /* always: store-outside-tx */
	}
	TX_END
	pmemobj_persist(pool, &root->length, sizeof(root->length));
}

static uint64_t count(const struct root *root)
{
	uint64_t nodes = 0;

	for (PMEMoid oid = root->head; oid.off; oid = ((struct node *)pmemobj_direct(oid))->next)
		nodes++;
	return nodes;
}

int main(int argc, char **argv)
{
	PMEMobjpool *pool = open_pool(argv[1]);
	struct root *root = pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));

	(void)argc;
	if (perdure_stage() > 0) {
		WHEN_FIXED(root->length = count(root);)
		WHEN_FIXED(pmemobj_persist(pool, &root->length, sizeof(root->length));)
		if (root->length == 12345) /* expect: cross-failure-race */
			return (int)count(root);
	} else {
		append(pool, root, 1);
		append(pool, root, 2);
	}
	pmemobj_close(pool);
	return 0;
}
