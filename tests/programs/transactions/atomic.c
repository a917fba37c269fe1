/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomic operations in a transaction: it may write the object, but does not flush it. */
/* flags: -lpmemobj */
/* no-pm: yes */
#include "../pool.h"

static int refuse(PMEMobjpool *pool, void *memory, void *argument)
{
	(void)pool;
	(void)argument;
	((struct node *)memory)->key = 9; /* the allocation does not happen */
	return 1;
}

int main(int argc, char **argv)
{
	PMEMobjpool *pool = pool_create(argv[1]);
	struct root *root = pool_root(pool);
	PMEMoid oid, big;
	struct node *node;

	TX_BEGIN(pool) {
		pmemobj_zalloc(pool, &oid, sizeof(struct node), 1);
		node = pmemobj_direct(oid);
		node->key = argc; /* expect: missing-flush */
		WHEN_FIXED(pmemobj_persist(pool, &node->key, 8));
	} TX_END
	pmemobj_alloc(pool, &root->first, sizeof(struct node), 1, refuse, NULL);
	pmemobj_zalloc(pool, &big, sizeof(struct node), 1);
	node = pmemobj_direct(big);
	node->value = argc; /* expect: missing-flush */
	if (pmemobj_realloc(pool, &big, 1ul << 30, 1) == 0) /* fails: the object stays as it is */
		return 1;
	WHEN_FIXED(pmemobj_persist(pool, &node->value, 8));
	pmemobj_close(pool);
	return 0;
}
