/* SPDX-License-Identifier: BSD-3-Clause */
/* Millions of flushes without a fence: still fast, and one finding. */
#include "../pm.h"

int main(int argc, char **argv)
{
	volatile int *p = pm_map(argv);

	for (int i = 0; i < 1000000; i++) {
		*p = i + argc; /* expect: missing-fence */
		CLWB(p);
		WHEN_FIXED(if (i % 1000 == 999) SFENCE());
	}
	return 0;
}
