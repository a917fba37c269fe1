/* SPDX-License-Identifier: BSD-3-Clause */
/* Instructions written as numbers are listed. */
/* limit: inline assembly not understood: jmp 1f; .byte 0x66,0x0f,0xae,0x30 */
#include "../pm.h"

int main(int argc, char **argv)
{
	char *p = pm_map(argv);

	p[0] = (char)argc; /* expect: missing-flush */
	__asm__ volatile("jmp 1f; .byte 0x66,0x0f,0xae,0x30; 1:" ::"a"(p) : "memory");
	WHEN_FIXED(PERSIST(p));
	return 0;
}
