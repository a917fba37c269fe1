/* SPDX-License-Identifier: BSD-3-Clause */
/* exec ends the program: what the next image flushes comes too late. */
#include "../pm.h"

int main(int argc, char **argv)
{
	long *p = pm_map(argv);

	if (argc > 2) {
		p[1] = 1;
		PERSIST(p);
		return 0;
	}
	p[0] = argc; /* expect: missing-flush */
	WHEN_FIXED(PERSIST(p));
	execl("/proc/self/exe", argv[0], argv[1], "again", (char *)NULL);
	return 9;
}
