/* SPDX-License-Identifier: BSD-3-Clause */
/* merged: a function that calls another one last leaves no frame */
/* A library call in tail position belongs to the function that makes it. */
#include "../pm.h"

__attribute__((noinline)) static void copy(char *to, const char *from)
{
	strcpy(to, from); /* expect: missing-flush */
}

__attribute__((noinline)) static void *clear(char *to, size_t n)
{
	return memset(to, 1, n); /* expect: missing-flush */
}

int main(int argc, char **argv)
{
	char *p = pm_map(argv);

	copy(p, "text");
	clear(p + 64, argc + 100);
#ifdef FIXED
	CLFLUSH(p);
	CLFLUSH(p + 64);
	CLFLUSH(p + 128);
#endif
	return 0;
}
