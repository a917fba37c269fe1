/* SPDX-License-Identifier: BSD-3-Clause */
/* Every mapping keeps its pages and its rights, whatever happens to another one of the file. */
#include "../pm.h"

enum { HALF = PM_SIZE / 2 };

static char *map(const char *path, int protection, size_t size, off_t offset)
{
	int fd = open(path, O_RDWR);
	char *p = mmap(NULL, size, protection, MAP_SHARED, fd, offset);

	close(fd);
	if (p == MAP_FAILED)
		exit(9);
	return p;
}

int main(int argc, char **argv)
{
	char *a = pm_map(argv), *b = map(argv[1], PROT_READ, 4096, 0), *c;

	(void)argc;
	a[0] = b[0] + 1;
	munmap(b, 4096);
	a[1] = 2;
	CLFLUSH(a);
	b = map(argv[1], PROT_READ | PROT_WRITE, PM_SIZE, 0);
	munmap(b + HALF, HALF);
	a[HALF] = 1;
	CLFLUSH(a + HALF);
	mprotect(b, HALF, PROT_READ);
	a[128] = 1;
	CLFLUSH(a + 128);
	munmap(b, 4096);
	munmap(b + 4096, HALF - 4096);
	a[5 * 64] = 1;
	CLFLUSH(a + 5 * 64);
	munmap(a, PM_SIZE);
	a = map(argv[1], PROT_READ | PROT_WRITE, 4096, 0);
	b = map(argv[1], PROT_READ | PROT_WRITE, 4096, 4096);
	c = mremap(a, 4096, 16384, MREMAP_MAYMOVE);
	if (c == MAP_FAILED)
		return 8;
	b[0] = 1;
	CLFLUSH(b);
	munmap(b, 4096);
	c[8192] = 1; /* expect: missing-flush */
	c[4096] = 1; /* expect: missing-flush */
	WHEN_FIXED(CLFLUSH(c + 8192));
	WHEN_FIXED(CLFLUSH(c + 4096));
	return 0;
}
