/* SPDX-License-Identifier: BSD-3-Clause */
/* Wide and strange instructions in assembly: AVX, fxsave, a string instruction. */
/* flags: -mavx */
/* needs: avx */
#include "../pm.h"

int main(int argc, char **argv)
{
	char *p = pm_map(argv);
	void *to = p + 1024;
	long n = 128;

	__asm__ volatile("vpcmpeqd %%xmm0, %%xmm0, %%xmm0; vmovdqu %%ymm0, %0" : "=m"(*(char(*)[32])p)::"xmm0"); /* expect: missing-flush */
	__asm__ volatile("fxsave %0" : "=m"(*(char(*)[512])(p + 256))); /* expect: missing-flush */
	__asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(argc) : "memory"); /* expect: missing-flush */
#ifdef FIXED
	CLFLUSH(p);
	for (int i = 0; i < 8; i++)
		CLFLUSH(p + 256 + 64 * i);
	CLFLUSH(p + 1024);
	CLFLUSH(p + 1088);
#endif
	return 0;
}
