/* SPDX-License-Identifier: BSD-3-Clause */
/* The same field is logged twice. */
/* flags: -lpmemobj */
/* no-pm: yes */
#include "../pool.h"

int main(int argc, char **argv)
{
	PMEMobjpool *pool = pool_create(argv[1]);
	struct root *root = pool_root(pool);

	TX_BEGIN(pool) {
		TX_ADD_DIRECT(&root->count);
		root->count = argc;
		WHEN_BUGGY(TX_ADD_DIRECT(&root->count)); /* expect: duplicate-tx-add */
		root->count++;
	} TX_END
	TX_BEGIN(pool) {
		TX_ADD_DIRECT(&root->count); /* another transaction */
		root->count++;
	} TX_END
	pmemobj_close(pool);
	return 0;
}
