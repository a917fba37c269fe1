/* SPDX-License-Identifier: BSD-3-Clause */
/* A file that is extended and mapped further stays at its place; mremap works in place. */
#include "../pm.h"

int main(int argc, char **argv)
{
	char *p = pm_map(argv), *q;
	int fd = open(argv[1], O_RDWR);

	(void)argc;
	if (ftruncate(fd, PM_SIZE * 8) < 0)
		return 9;
	q = mmap(NULL, PM_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, PM_SIZE);
	if (q != p + PM_SIZE)
		return 8;
	q[0] = 1; /* expect: missing-flush */
	WHEN_FIXED(PERSIST(q));
	q = mremap(q, PM_SIZE, PM_SIZE * 4, MREMAP_MAYMOVE);
	if (q != p + PM_SIZE)
		return 7;
	q[PM_SIZE * 3] = 1;
	WHEN_FIXED(PERSIST(q + PM_SIZE * 3));
	munmap(q + PM_SIZE, PM_SIZE);
	q[PM_SIZE * 3]++; /* expect: missing-flush */
	WHEN_FIXED(PERSIST(q + PM_SIZE * 3));
	return 0;
}
