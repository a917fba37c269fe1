/* SPDX-License-Identifier: BSD-3-Clause */
/* merged: the two stores become one */
/* Only one of two branches forgets the flush: the line must be the right one. */
#include "../pm.h"

__attribute__((noinline)) static void set(long *p, int which)
{
	if (which) {
		p[0] = 1; /* expect: missing-flush */
		WHEN_FIXED(CLWB(p));
	} else {
		p[0] = 1;
		CLWB(p);
	}
	SFENCE();
}

int main(int argc, char **argv)
{
	long *p = pm_map(argv);

	set(p, argc > 5);
	set(p + 8, argc < 5);
	return 0;
}
