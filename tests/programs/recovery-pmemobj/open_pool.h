/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A pool that is opened, or made if there is none; one that a crash left half made is made again.
 * libpmemobj dies of an empty file, which a crash in pmemobj_create may leave.
 */
#ifndef TESTS_OPEN_POOL_H
#define TESTS_OPEN_POOL_H

#include "../pm.h"

#include <libpmemobj.h>
#include <sys/stat.h>
#include <perdure/perdure.h>

static inline PMEMobjpool *open_pool(const char *path)
{
	struct stat status;
	PMEMobjpool *pool = NULL;

	if (stat(path, &status) == 0 && status.st_size)
		pool = pmemobj_open(path, "test");
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
