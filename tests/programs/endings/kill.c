/* SPDX-License-Identifier: BSD-3-Clause */
/* Killed in a way that no handler can see. */
/* signal: 9 */
#include "../pm.h"

#include <signal.h>

int main(int argc, char **argv)
{
	long *p = pm_map(argv);

	p[0] = argc; /* expect: missing-flush */
	WHEN_FIXED(PERSIST(p));
	kill(getpid(), SIGKILL);
	pause();
}
