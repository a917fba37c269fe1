/* SPDX-License-Identifier: BSD-3-Clause */
/* Several instructions in one statement: in their order, with their widths. */
#include "../pm.h"

#include <immintrin.h>

int main(int argc, char **argv)
{
	char *p = pm_map(argv);
	int four = argc;
	char one = (char)argc;
	long eight = argc;
	__m128i sixteen = _mm_set1_epi32(argc);

	__asm__ volatile("movq %1, (%0)\n\tclwb (%0)\n\tsfence" ::"r"(p), "r"(eight) : "memory");
	__asm__ volatile("mov %1, (%0)" ::"r"(p + 128 + 60), "r"(four) : "memory");
	PERSIST(p + 128);
	__asm__ volatile("mov %b1, (%0)" ::"r"(p + 256 + 63), "q"(one) : "memory");
	PERSIST(p + 256);
	__asm__ volatile("movq %1, %%xmm0; movq %%xmm0, (%0)" ::"r"(p + 384 + 56), "r"(eight) : "memory", "xmm0");
	PERSIST(p + 384);
	__asm__ volatile("cmp $1, %1; sete (%0)" ::"r"(p + 512 + 63), "r"(four) : "memory", "cc");
	PERSIST(p + 512);
	p[1024] = 1;
	CLWB(p + 1024);
	__asm__ volatile("lock; addl $0, 0(%%rsp)" ::: "memory", "cc");
	p[1152] = 1;
	__asm__ volatile("/* flush */ clwb (%0)" ::"r"(p + 1152) : "memory");
	SFENCE();
	__asm__ volatile("movdqu %1, (%0)" ::"r"(p + 640 + 56), "x"(sixteen) : "memory"); /* expect: missing-flush */
	PERSIST(p + 640);
	WHEN_FIXED(PERSIST(p + 704));
	return 0;
}
