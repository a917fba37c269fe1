/* SPDX-License-Identifier: BSD-3-Clause */
/* Off by default. */
#include "../pm.h"

int main(int argc, char **argv)
{
	long *p = pm_map(argv);

	(void)argc;
	p[0] = 1;
	p[0] = 2; /* expect: missing-flush */
	WHEN_FIXED(PERSIST(p));
	return 0;
}
