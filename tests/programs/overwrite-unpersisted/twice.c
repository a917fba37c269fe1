/* SPDX-License-Identifier: BSD-3-Clause */
/* left-out: -O1 -O2 -O3 -Os: the first store is removed */
/* Opt-in: a store is overwritten before it was persistent. */
/* options: --enable overwrite-unpersisted */
#include "../pm.h"

int main(int argc, char **argv)
{
	long *p = pm_map(argv);

	(void)argc;
	p[0] = 1; /* expect: overwrite-unpersisted */
	WHEN_FIXED(PERSIST(p));
	p[0] = 2;
	PERSIST(p);
	return 0;
}
