/* SPDX-License-Identifier: BSD-3-Clause */
/* perdure-cc: other code is not asked about ordinary memory */
/* Two fences in a row. A fence after an ordinary store may be there for other threads. */
#include "../pm.h"

static long shared;

int main(int argc, char **argv)
{
	long *p = pm_map(argv);

	p[0] = 1;
	CLWB(p);
	SFENCE();
	WHEN_BUGGY(SFENCE()); /* expect: redundant-fence */
	shared = argc;
	SFENCE();
	p[8] = 1;
	CLWB(p + 8);
	MFENCE();
	MFENCE();
	WHEN_BUGGY(SFENCE()); /* expect: redundant-fence */
	return 0;
}
