/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that dies inside a transaction: a recovery undoes what was logged, and nothing else. */
/* flags: -lpmemobj */
/* no-pm: yes */
/* signal: 11 */
#include "../pool.h"

int main(int argc, char **argv)
{
	PMEMobjpool *pool = pool_create(argv[1]);
	struct root *root = pool_root(pool);

	TX_BEGIN(pool) {
		struct node *node = pmemobj_direct(pmemobj_tx_zalloc(sizeof(struct node), 1));

		node->key = argc;
		TX_ADD_DIRECT(&root->count);
		root->count = argc;
		WHEN_FIXED(TX_ADD_DIRECT(&root->total));
		root->total = argc; /* expect: store-outside-tx missing-flush */
		*(volatile char *)(long)argc = 0;
	} TX_END
	pmemobj_close(pool);
	return 0;
}
