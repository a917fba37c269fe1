/* SPDX-License-Identifier: BSD-3-Clause */
/* A fatal signal ends it. */
/* signal: 6 */
#include "../pm.h"

int main(int argc, char **argv)
{
	long *p = pm_map(argv);

	p[0] = argc; /* expect: missing-flush */
	WHEN_FIXED(PERSIST(p));
	abort();
}
