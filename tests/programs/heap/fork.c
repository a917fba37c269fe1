/* SPDX-License-Identifier: BSD-3-Clause */
/* A child's heap is a copy: its flush does not help the parent. */
/* options: --pm-heap */
/* no-pm: yes */
#include "../pm.h"

#include <sys/wait.h>

int main(int argc, char **argv)
{
	char *p = aligned_alloc(64, 64);

	(void)argv;
	p[0] = (char)argc; /* expect: missing-flush */
	if (fork() == 0) {
		p[1] = 2;
		PERSIST(p);
		_exit(0);
	}
	wait(NULL);
	WHEN_FIXED(PERSIST(p));
	return 0;
}
