/* SPDX-License-Identifier: BSD-3-Clause */
/* The program ends by quick: what was in flight is lost. */
/* exit: 5 */
#include "../pm.h"

int main(int argc, char **argv)
{
	long *p = pm_map(argv);

	p[0] = argc; /* expect: missing-flush */
	WHEN_FIXED(CLFLUSH(p));
	p[8] = argc; /* expect: missing-fence */
	CLWB(p + 8);
	WHEN_FIXED(SFENCE());
	quick_exit(5);
}
