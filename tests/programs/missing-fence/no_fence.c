/* SPDX-License-Identifier: BSD-3-Clause */
/* Flushed, but nothing orders the flush before the program ends. */
#include "../pm.h"

int main(int argc, char **argv)
{
	long *p = pm_map(argv);

	(void)argc;
	p[0] = 1; /* expect: missing-fence */
	CLWB(p);
	WHEN_FIXED(SFENCE());
	return 0;
}
