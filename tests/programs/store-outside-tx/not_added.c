/* SPDX-License-Identifier: BSD-3-Clause */
/* A field is changed in a transaction that has not logged it. */
/* flags: -lpmemobj */
/* no-pm: yes */
#include "../pool.h"

int main(int argc, char **argv)
{
	PMEMobjpool *pool = pool_create(argv[1]);
	struct root *root = pool_root(pool);

	TX_BEGIN(pool) {
		WHEN_FIXED(pmemobj_tx_add_range_direct(&root->count, sizeof(root->count)));
		root->count = argc; /* expect: store-outside-tx missing-flush */
	} TX_END
	pmemobj_close(pool);
	return 0;
}
