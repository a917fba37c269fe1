/* SPDX-License-Identifier: BSD-3-Clause */
/* A transaction on one pool says nothing about another one. */
/* flags: -lpmemobj */
/* no-pm: yes */
#include "../pool.h"

int main(int argc, char **argv)
{
	char other_path[4096];
	PMEMobjpool *pool = pool_create(argv[1]), *other;
	struct root *root = pool_root(pool), *other_root;

	snprintf(other_path, sizeof(other_path), "%s-2", argv[1]);
	other = pool_create(other_path);
	other_root = pool_root(other);
	TX_BEGIN(pool) {
		TX_ADD_DIRECT(&root->count);
		root->count = argc;
		other_root->count = argc; /* persisted by hand, as its pool has no transaction */
		pmemobj_persist(other, &other_root->count, sizeof(uint64_t));
	} TX_END
	TX_BEGIN(other) {
		WHEN_FIXED(TX_ADD_DIRECT(&other_root->total));
		other_root->total = argc; /* expect: store-outside-tx missing-flush */
	} TX_END
	pmemobj_close(other);
	pmemobj_close(pool);
	return 0;
}
