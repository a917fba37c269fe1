/* SPDX-License-Identifier: BSD-3-Clause */
/* For the test programs on libpmemobj: a fresh pool with a root object, and a layout for objects. */
#ifndef TESTS_POOL_H
#define TESTS_POOL_H

#include "pm.h"

#include <libpmemobj.h>

struct node {
	uint64_t key;
	uint64_t value;
	char name[48];
	PMEMoid next;
};

struct root {
	uint64_t count;
	char padding[56];
	uint64_t total;
	char more_padding[56];
	PMEMoid first;
	struct node inline_node;
};

static inline PMEMobjpool *pool_create(const char *path)
{
	PMEMobjpool *pool = pmemobj_create(path, "test", PMEMOBJ_MIN_POOL, 0600);

	if (!pool) {
		fprintf(stderr, "%s: %s\n", path, pmemobj_errormsg());
		exit(9);
	}
	return pool;
}

static inline struct root *pool_root(PMEMobjpool *pool)
{
	return (struct root *)pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
}

#endif
