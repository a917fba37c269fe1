/* SPDX-License-Identifier: BSD-3-Clause */
/* An object is free to write in the transaction that allocates it, and only there. */
/* flags: -lpmemobj */
/* no-pm: yes */
#include "../pool.h"

static void add(PMEMobjpool *pool, struct root *root, uint64_t key)
{
	TX_BEGIN(pool) {
		PMEMoid oid = pmemobj_tx_zalloc(sizeof(struct node), 1);
		struct node *node = pmemobj_direct(oid);

		node->key = key;
		strcpy(node->name, "new");
		node->next = root->first;
		TX_ADD_DIRECT(&root->first);
		root->first = oid;
	} TX_END
}

int main(int argc, char **argv)
{
	PMEMobjpool *pool = pool_create(argv[1]);
	struct root *root = pool_root(pool);
	struct node *node;

	for (int i = 0; i < 5; i++)
		add(pool, root, argc + i);
	node = pmemobj_direct(root->first); /* is freed later: that it is not flushed is no loss */
	TX_BEGIN(pool) {
		WHEN_FIXED(TX_ADD_DIRECT(&node->key));
		node->key = 7; /* expect: store-outside-tx */
	} TX_END
	TX_BEGIN(pool) {
		struct node *bigger;

		TX_ADD_DIRECT(&root->first);
		root->first = pmemobj_tx_realloc(root->first, 4096, 1);
		bigger = pmemobj_direct(root->first);
		bigger->value = 8;
		memset(bigger + 1, 1, 1000);
	} TX_END
	TX_BEGIN(pool) {
		PMEMoid next = ((struct node *)pmemobj_direct(root->first))->next;

		pmemobj_tx_free(root->first);
		TX_SET_DIRECT(root, first, next);
	} TX_END
	pmemobj_close(pool);
	return 0;
}
