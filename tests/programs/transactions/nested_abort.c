/* SPDX-License-Identifier: BSD-3-Clause */
/* An inner transaction without a jump buffer aborts: the outer one is aborted when it ends. */
/* flags: -lpmemobj */
/* no-pm: yes */
#include "../pool.h"

int main(int argc, char **argv)
{
	PMEMobjpool *pool = pool_create(argv[1]);
	struct root *root = pool_root(pool);

	pmemobj_tx_begin(pool, NULL, TX_PARAM_NONE);
	pmemobj_tx_begin(pool, NULL, TX_PARAM_NONE);
	pmemobj_tx_abort(ECANCELED);
	pmemobj_tx_end();
	if (pmemobj_tx_stage() != TX_STAGE_ONABORT)
		return 1;
	root->count = argc; /* no transaction works here */
	pmemobj_persist(pool, &root->count, 8);
	pmemobj_tx_end();
	pmemobj_tx_begin(pool, NULL, TX_PARAM_NONE);
	WHEN_FIXED(pmemobj_tx_add_range_direct(&root->total, 8));
	root->total = argc; /* expect: store-outside-tx missing-flush */
	pmemobj_tx_commit();
	pmemobj_tx_end();
	pmemobj_close(pool);
	return 0;
}
