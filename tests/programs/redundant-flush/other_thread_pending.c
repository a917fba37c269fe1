/* SPDX-License-Identifier: BSD-3-Clause */
/* Another thread's pending flush does not make this one redundant: only its fence would. */
#include "../pm.h"

#include <pthread.h>

static volatile int step;

static void *flusher(void *argument)
{
	CLWB(argument);
	step = 1;
	while (step != 2)
		;
	return NULL;
}

int main(int argc, char **argv)
{
	long *p = pm_map(argv);
	pthread_t thread;

	(void)argc;
	p[0] = 1;
	pthread_create(&thread, NULL, flusher, p);
	while (step != 1)
		;
	CLWB(p);
	SFENCE();
	WHEN_BUGGY(CLWB(p)); /* expect: redundant-flush */
	step = 2;
	pthread_join(thread, NULL);
	return 0;
}
