/* SPDX-License-Identifier: BSD-3-Clause */
/* A private mapping of a PM file is ordinary memory. */
#include "../pm.h"

int main(int argc, char **argv)
{
	long *p = pm_map(argv);
	int fd = open(argv[1], O_RDWR);
	long *copy = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);

	(void)argc;
	copy[0] = 1;
	p[0] = 2; /* expect: missing-flush */
	WHEN_FIXED(PERSIST(p));
	return copy[0] == 1 ? 0 : 9;
}
