/* SPDX-License-Identifier: BSD-3-Clause */
/* Persisted in the wrong order, but persisted: nothing that `run` could say. */
#include "../pm.h"

int main(int argc, char **argv)
{
	long *p = pm_map(argv);

	(void)argc;
	p[0] = 1;
	p[8] = 2;
	PERSIST(p + 8);
	PERSIST(p);
	p[16] = 3; /* expect: missing-flush */
	WHEN_FIXED(PERSIST(p + 16));
	return 0;
}
