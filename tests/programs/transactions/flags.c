/* SPDX-License-Identifier: BSD-3-Clause */
/* tx_xadd: a range that is not snapshotted may be written; one that is not flushed must be. */
/* flags: -lpmemobj */
/* no-pm: yes */
#include "../pool.h"

int main(int argc, char **argv)
{
	PMEMobjpool *pool = pool_create(argv[1]);
	struct root *root = pool_root(pool);
	PMEMoid oid;
	struct node *node;

	TX_BEGIN(pool) {
		pmemobj_tx_xadd_range_direct(&root->count, 8, POBJ_XADD_NO_SNAPSHOT);
		root->count = argc;
		pmemobj_tx_xadd_range_direct(&root->total, 8, POBJ_XADD_NO_FLUSH);
		root->total = argc; /* expect: missing-flush */
		oid = pmemobj_tx_xalloc(sizeof(struct node), 1, POBJ_XALLOC_NO_FLUSH);
		node = pmemobj_direct(oid);
		node->key = argc; /* expect: missing-flush */
		TX_ADD_DIRECT(&root->first);
		root->first = oid;
	} TX_END
	WHEN_FIXED(pmemobj_persist(pool, &root->total, 8));
	WHEN_FIXED(pmemobj_persist(pool, node, 8));
	pmemobj_close(pool);
	return 0;
}
