/* SPDX-License-Identifier: BSD-3-Clause */
/* A store in a signal handler: the stack leads through the interrupted function to main. */
#include "../pm.h"

#include <signal.h>

static long *p;

static void handler(int number)
{
	p[0] = number; /* expect: missing-flush */
}

__attribute__((noinline)) static void interrupted(void)
{
	raise(SIGUSR1);
	__asm__ volatile("");
}

int main(int argc, char **argv)
{
	(void)argc;
	p = pm_map(argv);
	signal(SIGUSR1, handler);
	interrupted();
	WHEN_FIXED(CLFLUSH(p));
	return 0;
}
