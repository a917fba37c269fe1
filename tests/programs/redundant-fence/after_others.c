/* SPDX-License-Identifier: BSD-3-Clause */
/* perdure-cc: other code is not asked about ordinary memory */
/* A fence may be there for what assembly or libc stored in ordinary memory. */
#include "../pm.h"

static int shared;

int main(int argc, char **argv)
{
	long *p = pm_map(argv);
	char *heap = malloc(100);
	char *end;

	p[0] = argc;
	PERSIST(p);
	__asm__ volatile("movl $1, %0" : "=m"(shared));
	SFENCE();
	__asm__ volatile("movl $1, (%0)" ::"r"(heap) : "memory");
	SFENCE();
	qsort(heap, 2, 1, (int (*)(const void *, const void *))strcmp);
	SFENCE();
	shared += (int)strtol(argv[0], &end, 10);
	SFENCE();
	WHEN_BUGGY(SFENCE()); /* expect: redundant-fence */
	return 0;
}
