/* SPDX-License-Identifier: BSD-3-Clause */
/* Judged when the region is unmapped: what is flushed by a later mapping comes too late. */
#include "../pm.h"

int main(int argc, char **argv)
{
	long *p = pm_map(argv);

	(void)argc;
	p[0] = 1; /* expect: missing-flush */
	WHEN_FIXED(PERSIST(p));
	munmap(p, PM_SIZE);
	p = pm_map(argv);
	p[0] = 2;
	PERSIST(p);
	return 0;
}
