/* SPDX-License-Identifier: BSD-3-Clause */
/* A flush of any byte is a flush of the whole line, and of no other. */
#include "../pm.h"

int main(int argc, char **argv)
{
	long *p = pm_map(argv);

	(void)argc;
	p[0] = 1;
	p[8] = 2; /* expect: missing-flush */
	CLWB((char *)p + 32);
	WHEN_FIXED(CLWB((char *)p + 127));
	SFENCE();
	return 0;
}
