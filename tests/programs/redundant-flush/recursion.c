/* SPDX-License-Identifier: BSD-3-Clause */
/* Reached at any depth of a recursion it is one finding. */
/* findings: 1 */
#include "../pm.h"

__attribute__((noinline)) static void walk(char *p, int depth)
{
	WHEN_BUGGY(CLWB(p)); /* expect: redundant-flush */
	if (depth % 2)
		walk(p + 64, depth - 1);
	else if (depth)
		walk(p + 128, depth - 1);
	__asm__ volatile("");
}

int main(int argc, char **argv)
{
	walk(pm_map(argv), argc + 100);
	return 0;
}
