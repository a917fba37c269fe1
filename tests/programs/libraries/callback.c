/* SPDX-License-Identifier: BSD-3-Clause */
/* A callback from libc, which keeps no frame pointers: the stack still reaches main. */
#include "../pm.h"

static long *counter;

static int compare(const void *a, const void *b)
{
	(*counter)++; /* expect: missing-flush */
	return *(const int *)a - *(const int *)b;
}

int main(int argc, char **argv)
{
	int numbers[] = { 3, 1, 2, argc };

	counter = pm_map(argv);
	qsort(numbers, 4, sizeof(int), compare);
	WHEN_FIXED(PERSIST(counter));
	return 0;
}
