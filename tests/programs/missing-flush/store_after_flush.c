/* SPDX-License-Identifier: BSD-3-Clause */
/* A store after the flush of its line and before the fence is not covered. */
#include "../pm.h"

int main(int argc, char **argv)
{
	long *p = pm_map(argv);

	(void)argc;
	p[0] = 1;
	CLWB(p);
	p[1] = 2; /* expect: missing-flush */
	WHEN_FIXED(CLWB(p));
	SFENCE();
	return 0;
}
