/* SPDX-License-Identifier: BSD-3-Clause */
/* A copy that is longer than what was logged for it. */
/* flags: -lpmemobj */
/* no-pm: yes */
#include "../pool.h"

int main(int argc, char **argv)
{
	PMEMobjpool *pool = pool_create(argv[1]);
	struct root *root = pool_root(pool);
	struct node *node = &root->inline_node;
	size_t logged = sizeof(node->name) WHEN_BUGGY(- 8);

	TX_BEGIN(pool) {
		pmemobj_tx_add_range_direct(node->name, logged);
		memset(node->name, argc, sizeof(node->name)); /* expect: store-outside-tx */
		WHEN_FIXED(TX_ADD_DIRECT(&root->more_padding));
		pmemobj_memset(pool, &root->more_padding, 0, 16, PMEMOBJ_F_MEM_NODRAIN); /* expect: store-outside-tx */
		pmemobj_memcpy_persist(pool, root->padding, "meant so", 8);
		pmemobj_memcpy(pool, root->padding + 8, "and this", 8, 0);
	} TX_END
	pmemobj_close(pool);
	return 0;
}
