/* SPDX-License-Identifier: BSD-3-Clause */
/* A wild store inside PM's window that is not mapped: the program's own crash. */
/* signal: 11 */
#include "../pm.h"

int main(int argc, char **argv)
{
	long *p = pm_map(argv);

	p[0] = argc; /* expect: missing-flush */
	WHEN_FIXED(PERSIST(p));
	p[PM_SIZE] = 1;
	return 0;
}
