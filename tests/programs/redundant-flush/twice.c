/* SPDX-License-Identifier: BSD-3-Clause */
/* Flushed twice without a store in between: before the fence, and after it. */
#include "../pm.h"

int main(int argc, char **argv)
{
	long *p = pm_map(argv);

	(void)argc;
	p[0] = 1;
	CLWB(p);
	WHEN_BUGGY(CLWB(p + 1)); /* expect: redundant-flush */
	SFENCE();
	p[8] = 1;
	PERSIST(p + 8);
	WHEN_BUGGY(CLFLUSH(p)); /* expect: redundant-flush */
	return 0;
}
