/* SPDX-License-Identifier: BSD-3-Clause */
/* A pool that is opened, or made if there is none; one that a crash left half made is made again. */
#ifndef TESTS_OPEN_POOL_H
#define TESTS_OPEN_POOL_H

#include "../pm.h"

#include <libpmemobj.h>
#include <perdure/perdure.h>

static inline PMEMobjpool *open_pool(const char *path)
{
	PMEMobjpool *pool = access(path, F_OK) == 0 ? pmemobj_open(path, "test") : NULL;

	if (pool)
		return pool;
	unlink(path);
	pool = pmemobj_create(path, "test", PMEMOBJ_MIN_POOL, 0600);
	if (!pool) {
		fprintf(stderr, "%s: %s\n", path, pmemobj_errormsg());
		exit(9);
	}
	return pool;
}

#endif
