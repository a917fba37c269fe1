/* SPDX-License-Identifier: BSD-3-Clause */
/* Storing what is there already is a store. */
#include "../pm.h"

int main(int argc, char **argv)
{
	volatile long *p = pm_map(argv);

	(void)argc;
	p[0] = 0; /* expect: missing-flush */
	WHEN_FIXED(PERSIST(p));
	return 0;
}
