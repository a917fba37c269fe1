/* command: check */
/* flags: -lpmemobj */
/* no-pm: libpmemobj maps the pool */
/* model-limit: a prebuilt library writes to PM */
/* model-limit: recoveries depend on more than what they read */
/*
 * An object that is allocated and not filled in. Recovery may look at what is in an object that it has
 * allocated itself, as assignments that exchange values do, and it may set a variable atomically:
 * compilers make an exchange of that, but nobody reads what was there.
 */
#include "open_pool.h"

struct node {
	char rest[320];
	uint64_t count;
};

struct root {
	PMEMoid node;
	uint64_t opened;
};

static void create(PMEMobjpool *pool, struct root *root)
{
	TX_BEGIN(pool)
	{
		PMEMoid oid = pmemobj_tx_alloc(sizeof(struct node), 1);
		const volatile struct node *node = pmemobj_direct(oid);

		(void)node->count;
		pmemobj_tx_add_range_direct(root, sizeof(*root));
		root->node = oid;
	}
	TX_END
}

int main(int argc, char **argv)
{
	PMEMobjpool *pool = open_pool(argv[1]);
	struct root *root = pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
	struct node *node;
	int status = 0;

	(void)argc;
	if (!root->node.off)
		create(pool, root);
	root->opened = 1; /* a crash here finds the node as it was allocated */
	pmemobj_persist(pool, &root->opened, sizeof(root->opened));
	node = pmemobj_direct(root->node);
#ifndef FIXED
	if (perdure_stage() > 0 && node->count == 1234) /* expect: cross-failure-race */
		status = 1;
#endif
	__atomic_store_n(&node->count, 5, __ATOMIC_SEQ_CST);
	pmemobj_persist(pool, &node->count, sizeof(node->count));
	pmemobj_close(pool);
	return status;
}
