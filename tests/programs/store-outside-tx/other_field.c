/* SPDX-License-Identifier: BSD-3-Clause */
/* merged: two stores become one */
/* One field is logged, its neighbour is changed as well; both share a cache line. */
/* flags: -lpmemobj */
/* no-pm: yes */
#include "../pool.h"

int main(int argc, char **argv)
{
	PMEMobjpool *pool = pool_create(argv[1]);
	struct root *root = pool_root(pool);
	struct node *node = &root->inline_node;

	TX_BEGIN(pool) {
		TX_ADD_DIRECT(&node->key);
		node->key = argc;
		WHEN_FIXED(TX_ADD_DIRECT(&node->value));
		node->value = argc; /* expect: store-outside-tx */
		WHEN_FIXED(TX_MEMCPY(node->name, "node", 5));
		WHEN_BUGGY(memcpy(node->name, "node", 5)); /* expect: store-outside-tx */
	} TX_END
	pmemobj_close(pool);
	return 0;
}
