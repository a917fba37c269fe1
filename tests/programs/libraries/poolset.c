/* SPDX-License-Identifier: BSD-3-Clause */
/* A pool of two files, of which the second lies behind the first, and is opened again. */
/* flags: -lpmemobj */
/* no-pm: yes */
#include "../pool.h"

int main(int argc, char **argv)
{
	char path[4096];
	PMEMobjpool *pool;
	PMEMoid oid;
	long *far;
	FILE *set;

	snprintf(path, sizeof(path), "%s.set", argv[1]);
	set = fopen(path, "w");
	fprintf(set, "PMEMPOOLSET\n16M %s.a\n32M %s.b\n", argv[1], argv[1]);
	fclose(set);
	pool = pmemobj_create(path, "set", 0, 0600);
	if (!pool || pmemobj_zalloc(pool, &oid, 30 << 20, 1))
		return 8;
	far = (long *)pmemobj_direct(oid) + (25 << 20) / sizeof(long);
	*far = argc; /* expect: missing-flush */
	WHEN_FIXED(pmemobj_persist(pool, far, sizeof(*far)));
	pmemobj_close(pool);
	pool = pmemobj_open(path, "set");
	if (!pool)
		return 7;
	pmemobj_close(pool);
	return pmemobj_check(path, "set") == 1 ? 0 : 6;
}
