/* SPDX-License-Identifier: BSD-3-Clause */
/* perdure-cc: only a compiler knows what is in which structure */
/* A structure that only transactions may change. */
/* flags: -lpmemobj */
/* no-pm: yes */
/* options: --tx-only 'struct node' */
#include "../pool.h"

int main(int argc, char **argv)
{
	PMEMobjpool *pool = pool_create(argv[1]);
	struct root *root = pool_root(pool);
	struct node *node = &root->inline_node, copy = { .key = argc };

	root->count = argc; /* another structure */
	pmemobj_persist(pool, &root->count, sizeof(root->count));
	TX_BEGIN(pool) {
		TX_ADD_DIRECT(node);
		node->key = argc;
		root->inline_node.value = argc;
		*node = copy;
	} TX_END
#ifndef FIXED
	node->value = argc; /* expect: store-outside-tx */
	pmemobj_persist(pool, &node->value, sizeof(node->value));
	root->inline_node.name[argc] = 'x'; /* expect: store-outside-tx */
	pmemobj_persist(pool, &node->name[argc], 1);
	memset(node, 0, sizeof(*node)); /* expect: store-outside-tx */
	pmemobj_persist(pool, node, sizeof(*node));
	*node = copy; /* expect: store-outside-tx */
	pmemobj_persist(pool, node, sizeof(*node));
#endif
	pmemobj_close(pool);
	return 0;
}
