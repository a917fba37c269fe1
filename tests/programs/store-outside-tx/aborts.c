/* SPDX-License-Identifier: BSD-3-Clause */
/* Transactions that abort, by hand, from within, and by an allocation that fails. */
/* flags: -lpmemobj */
/* no-pm: yes */
#include "../pool.h"

static int failures;

static void abort_nested(PMEMobjpool *pool, struct root *root)
{
	TX_BEGIN(pool) {
		TX_ADD_DIRECT(&root->count);
		root->count = 1;
		TX_BEGIN(pool) {
			TX_ADD_DIRECT(&root->total);
			root->total = 2;
			pmemobj_tx_abort(ECANCELED);
		} TX_ONABORT {
			failures++;
		} TX_END
		root->inline_node.key = 3; /* not reached: the outer one is aborted as well */
	} TX_ONABORT {
		failures++;
	} TX_FINALLY {
		failures += 10;
	} TX_END
}

static void abort_by_allocation(PMEMobjpool *pool, struct root *root)
{
	TX_BEGIN(pool) {
		struct node *node = pmemobj_direct(pmemobj_tx_alloc(sizeof(struct node), 1));

		node->key = 1;
		TX_ADD_DIRECT(&root->count);
		root->count = 4;
		pmemobj_tx_alloc(1ul << 30, 1);
		root->total = 5; /* not reached */
	} TX_ONABORT {
		failures++;
	} TX_END
}

static void go_on_after_failure(PMEMobjpool *pool, struct root *root)
{
	TX_BEGIN(pool) {
		TX_ADD_DIRECT(&root->count);
		root->count = 4;
		pmemobj_tx_xalloc(1ul << 30, 1, POBJ_XALLOC_NO_ABORT);
		TX_ADD_DIRECT(&root->total);
		root->total = 5;
	} TX_ONABORT {
		failures = 1000;
	} TX_END
}

int main(int argc, char **argv)
{
	PMEMobjpool *pool = pool_create(argv[1]);
	struct root *root = pool_root(pool);

	abort_nested(pool, root);
	abort_by_allocation(pool, root);
	go_on_after_failure(pool, root);
	root->inline_node.key = argc; /* outside of all: an ordinary store */
	pmemobj_persist(pool, &root->inline_node.key, sizeof(uint64_t));
	TX_BEGIN(pool) {
		WHEN_FIXED(TX_ADD_DIRECT(&root->inline_node.value));
		root->inline_node.value = argc; /* expect: store-outside-tx missing-flush */
	} TX_END
	pmemobj_close(pool);
	return failures == 13 ? 0 : 5;
}
