/* SPDX-License-Identifier: BSD-3-Clause */
/* Reserved objects are filled before they are published, and are ordinary ones afterwards. */
/* flags: -lpmemobj */
/* no-pm: yes */
#include "../pool.h"

int main(int argc, char **argv)
{
	PMEMobjpool *pool = pool_create(argv[1]);
	struct root *root = pool_root(pool);
	struct pobj_action action;
	PMEMoid oid = pmemobj_reserve(pool, &action, sizeof(struct node), 1);
	struct node *node = pmemobj_direct(oid);

	TX_BEGIN(pool) {
		memset(node, 0, sizeof(*node));
		node->key = argc;
		pmemobj_persist(pool, node, sizeof(*node));
		pmemobj_tx_publish(&action, 1);
		TX_ADD_DIRECT(&root->first);
		root->first = oid;
	} TX_END
	TX_BEGIN(pool) {
		WHEN_FIXED(TX_ADD_DIRECT(&node->value));
		node->value = argc; /* expect: store-outside-tx missing-flush */
	} TX_END
	pmemobj_close(pool);
	return 0;
}
