/* SPDX-License-Identifier: BSD-3-Clause */
/* MAP_SYNC says that it is PM: no --pm is needed, and it works on an ordinary file. */
/* no-pm: yes */
#include "../pm.h"

int main(int argc, char **argv)
{
	int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
	long *p;

	(void)argc;
	if (ftruncate(fd, 4096) < 0)
		return 9;
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED_VALIDATE | MAP_SYNC, fd, 0);
	if (p == MAP_FAILED)
		return 9;
	p[3] = 5; /* expect: missing-flush */
	WHEN_FIXED(PERSIST(p));
	return 0;
}
