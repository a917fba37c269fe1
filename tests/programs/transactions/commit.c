/* SPDX-License-Identifier: BSD-3-Clause */
/* A commit persists what was logged; what is stored later needs its own flush. */
/* flags: -lpmemobj */
/* no-pm: yes */
#include "../pool.h"

int main(int argc, char **argv)
{
	PMEMobjpool *pool = pool_create(argv[1]);
	struct root *root = pool_root(pool);

	TX_BEGIN(pool) {
		TX_ADD_DIRECT(root);
		root->count = argc;
		TX_SET_DIRECT(root, total, 2); /* always: duplicate-tx-add */
		root->inline_node.key = 3;
	} TX_ONCOMMIT {
		root->inline_node.value = 4; /* expect: missing-flush */
		WHEN_FIXED(pmemobj_persist(pool, &root->inline_node.value, sizeof(uint64_t)));
	} TX_END
	root->count = argc; /* expect: missing-flush */
	WHEN_FIXED(pmemobj_persist(pool, &root->count, sizeof(uint64_t)));
	pmemobj_persist(pool, &root->total, sizeof(uint64_t)); /* always: redundant-flush */
	pmemobj_close(pool);
	return 0;
}
