/* SPDX-License-Identifier: BSD-3-Clause */
/* merged: stores become a memset, or one store */
/* Stores that an optimiser would merge or drop are stores of the source all the same. */
#include "../pm.h"

__attribute__((noinline)) static void fill(long *p)
{
	p[0] = 0; /* expect: missing-flush */
	p[1] = 0; /* expect: missing-flush */
	p[8] = 1;
	CLWB(p + 8);
	p[8] = 2; /* expect: missing-flush */
	for (int i = 16; i < 64; i++)
		p[i] = 0; /* expect: missing-flush */
}

__attribute__((noinline)) static void either(long *p, int which)
{
	if (which)
		p[0] = 1; /* expect: missing-flush */
	else
		p[0] = 2; /* expect: missing-flush */
}

int main(int argc, char **argv)
{
	long *p = pm_map(argv);

	fill(p);
	either(p + 64, argc);
	either(p + 72, argc - 2);
#ifdef FIXED
	for (int i = 0; i < 80; i += 8)
		CLFLUSH(p + i);
#endif
	SFENCE();
	return 0;
}
