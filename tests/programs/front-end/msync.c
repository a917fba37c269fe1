/* SPDX-License-Identifier: BSD-3-Clause */
/* msync(MS_SYNC) and fsync persist, MS_ASYNC does not. */
#include "../pm.h"

int main(int argc, char **argv)
{
	char *p = pm_map(argv);
	int fd = open(argv[1], O_RDWR);

	(void)argc;
	p[0] = 1;
	msync(p, 4096, MS_SYNC);
	p[8192] = 1;
	fsync(fd);
	p[8256] = 1;
	fdatasync(fd);
	p[4096] = 1; /* expect: missing-flush */
	msync(p + 4096, 4096, WHEN_BUGGY(MS_ASYNC) WHEN_FIXED(MS_SYNC));
	return 0;
}
