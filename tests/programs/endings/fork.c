/* SPDX-License-Identifier: BSD-3-Clause */
/* Parent and child share the memory: either may flush what the other stored. */
#include "../pm.h"

#include <sys/wait.h>

int main(int argc, char **argv)
{
	long *p = pm_map(argv);
	pid_t child;

	(void)argc;
	p[0] = 1;
	child = fork();
	if (child == 0) {
		PERSIST(p);
		p[8] = 1;
		p[16] = 1; /* expect: missing-flush */
		WHEN_FIXED(PERSIST(p + 16));
		_exit(0);
	}
	waitpid(child, NULL, 0);
	PERSIST(p + 8);
	return 0;
}
