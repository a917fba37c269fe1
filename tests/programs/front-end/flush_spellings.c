/* SPDX-License-Identifier: BSD-3-Clause */
/* Every spelling of a flush and a fence; each line is persisted by its own one. */
/* flags: -mclwb -mclflushopt */
#include "../pm.h"

#include <immintrin.h>

static void persist(char *p)
{
	p[0 * 64] = 1;
	_mm_clflush(p + 0 * 64);
	p[1 * 64] = 1;
	_mm_clflushopt(p + 1 * 64);
	p[2 * 64] = 1;
	_mm_clwb(p + 2 * 64);
	_mm_sfence();
	p[3 * 64] = 1;
	__asm__ volatile("clwb (%0)" ::"r"(p + 3 * 64) : "memory");
	__asm__ volatile("sfence");
	p[4 * 64] = 1;
	__asm__ volatile("clflushopt %0" : "+m"(*(volatile char *)(p + 4 * 64)));
	_mm_mfence();
	p[5 * 64] = 1;
	__asm__ volatile("clflush (%0)" ::"r"(p + 5 * 64) : "memory");
	p[6 * 64] = 1;
	__asm__ volatile(".byte 0x66; clflush %P0" : "+m"(*(volatile char *)(p + 6 * 64)));
	__asm__ volatile("mfence" ::: "memory");
	p[7 * 64] = 1;
	__asm__ volatile(".byte 0x66\n\txsaveopt %0" : "+m"(*(volatile char *)(p + 7 * 64)));
	__sync_synchronize();
	p[8 * 64] = 1;
	__asm__ volatile("clwb %0\n\tsfence" ::"m"(*(p + 8 * 64)) : "memory");
	p[9 * 64 + 40] = 1;
	__asm__ volatile("CLWB 32(%0)" ::"r"(p + 9 * 64) : "memory");
	SFENCE();
}

int main(int argc, char **argv)
{
	char *p = pm_map(argv);

	(void)argc;
	persist(p);
	p[11 * 64] = 1; /* expect: missing-flush */
	WHEN_FIXED(PERSIST(p + 11 * 64));
	return 0;
}
