/* SPDX-License-Identifier: BSD-3-Clause */
/* perdure-cc: only a compiler knows what is in which structure */
/* A structure that does not exist is no silent success. */
/* flags: -lpmemobj */
/* no-pm: yes */
/* options: --tx-only no_such_thing */
/* limit: --tx-only no_such_thing: no such structure */
#include "../pool.h"

int main(int argc, char **argv)
{
	PMEMobjpool *pool = pool_create(argv[1]);
	struct root *root = pool_root(pool);

	root->count = argc; /* expect: missing-flush */
	WHEN_FIXED(pmemobj_persist(pool, &root->count, 8));
	pmemobj_close(pool);
	return 0;
}
