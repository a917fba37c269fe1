/* SPDX-License-Identifier: BSD-3-Clause */
/* What an inner transaction logged stays logged until the outer one ends, and no longer. */
/* flags: -lpmemobj */
/* no-pm: yes */
#include "../pool.h"

static void count(PMEMobjpool *pool, struct root *root)
{
	TX_BEGIN(pool) {
		TX_ADD_DIRECT(&root->count);
		root->count++;
	} TX_END
}

int main(int argc, char **argv)
{
	PMEMobjpool *pool = pool_create(argv[1]);
	struct root *root = pool_root(pool);

	TX_BEGIN(pool) {
		count(pool, root);
		root->count += argc;
		WHEN_FIXED(TX_ADD_DIRECT(&root->total));
		root->total = argc; /* expect: store-outside-tx missing-flush */
	} TX_END
	TX_BEGIN(pool) {
		WHEN_FIXED(TX_ADD_DIRECT(&root->count));
		root->count += argc; /* expect: store-outside-tx missing-flush */
	} TX_END
	pmemobj_close(pool);
	return 0;
}
