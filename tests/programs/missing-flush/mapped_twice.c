/* SPDX-License-Identifier: BSD-3-Clause */
/* Two mappings of one file are one memory: a flush through either counts. */
#include "../pm.h"

int main(int argc, char **argv)
{
	long *a = pm_map(argv), *b = pm_map(argv);

	(void)argc;
	a[0] = 1;
	PERSIST(b);
	a[8] = 1; /* expect: missing-flush */
	munmap(a, PM_SIZE);
	if (b[8] != 1)
		return 9;
	WHEN_FIXED(PERSIST(b + 8));
	return 0;
}
