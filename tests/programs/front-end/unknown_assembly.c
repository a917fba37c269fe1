/* SPDX-License-Identifier: BSD-3-Clause */
/* Assembly that nobody understands is listed, not dropped. */
/* limit: inline assembly not understood: jmp 1f; enqcmd */
#include "../pm.h"

int main(int argc, char **argv)
{
	char *p = pm_map(argv);

	p[0] = 1; /* expect: missing-flush */
	WHEN_FIXED(PERSIST(p));
	/* Jumps over itself: the instruction need not exist on this machine. */
	__asm__ volatile("jmp 1f; enqcmd (%0), %%rax; 1:" ::"r"(p), "a"(p) : "memory");
	return argc > 5;
}
