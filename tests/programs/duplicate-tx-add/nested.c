/* SPDX-License-Identifier: BSD-3-Clause */
/* An inner transaction logs what the outer one has logged. */
/* flags: -lpmemobj */
/* no-pm: yes */
#include "../pool.h"

static void inner(PMEMobjpool *pool, struct root *root)
{
	TX_BEGIN(pool) {
		WHEN_BUGGY(TX_ADD_DIRECT(&root->count)); /* expect: duplicate-tx-add */
		root->count++;
		TX_ADD_DIRECT(&root->total);
		root->total++;
	} TX_END
}

int main(int argc, char **argv)
{
	PMEMobjpool *pool = pool_create(argv[1]);
	struct root *root = pool_root(pool);

	(void)argc;
	TX_BEGIN(pool) {
		TX_ADD_DIRECT(&root->count);
		root->count++;
		inner(pool, root);
		WHEN_BUGGY(TX_ADD_DIRECT(&root->total)); /* expect: duplicate-tx-add */
		root->total++;
	} TX_END
	TX_BEGIN(pool) {
		PMEMoid oid = pmemobj_tx_zalloc(sizeof(struct node), 1);
		struct node *node = pmemobj_direct(oid);

		pmemobj_tx_add_range(oid, 0, 8); /* needless, but a new object is not in the log */
		node->key = 1;
		TX_ADD_DIRECT(&root->first);
		root->first = oid;
	} TX_END
	pmemobj_close(pool);
	return 0;
}
