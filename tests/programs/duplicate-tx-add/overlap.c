/* SPDX-License-Identifier: BSD-3-Clause */
/* A structure is logged after one of its fields, by object and offset. */
/* flags: -lpmemobj */
/* no-pm: yes */
#include "../pool.h"

int main(int argc, char **argv)
{
	PMEMobjpool *pool = pool_create(argv[1]);
	PMEMoid oid = pmemobj_root(pool, sizeof(struct root));
	struct root *root = pmemobj_direct(oid);

	TX_BEGIN(pool) {
		pmemobj_tx_add_range(oid, offsetof(struct root, total), 8);
		root->total = argc;
		WHEN_BUGGY(pmemobj_tx_add_range(oid, 0, sizeof(struct root))); /* expect: duplicate-tx-add */
		WHEN_FIXED(pmemobj_tx_add_range(oid, 0, 8));
		root->count = argc;
	} TX_END
	pmemobj_close(pool);
	return 0;
}
