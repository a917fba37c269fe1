/* SPDX-License-Identifier: BSD-3-Clause */
/* merged: two stores become one */
/* Two stores in two branches of a loop stay two, with a line each. */
#include "../pm.h"

__attribute__((noinline)) static void set(int *a, int n)
{
	for (int i = 0; i < n; i++) {
		if (i % 3)
			a[i * 16] = 1; /* expect: missing-flush */
		else
			a[i * 16] = 2; /* expect: missing-flush */
	}
}

int main(int argc, char **argv)
{
	char *p = pm_map(argv);

	(void)argc;
	set((int *)p, 100);
#ifdef FIXED
	for (int i = 0; i < 100; i++)
		CLFLUSH(p + 64 * i);
#endif
	return 0;
}
