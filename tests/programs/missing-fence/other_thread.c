/* SPDX-License-Identifier: BSD-3-Clause */
/* threads: a stack ends at the function the thread started with */
/* A fence completes only the flushes of its own thread; starting a thread is a fence, too. */
#include "../pm.h"

#include <pthread.h>

static pthread_barrier_t barrier;

static void *writer(void *argument)
{
	long *p = argument;

	pthread_barrier_wait(&barrier);
	p[0] = 1; /* expect: missing-fence */
	CLWB(p);
	WHEN_FIXED(SFENCE());
	return NULL;
}

int main(int argc, char **argv)
{
	long *p = pm_map(argv);
	pthread_t thread;

	(void)argc;
	pthread_barrier_init(&barrier, NULL, 2);
	p[8] = 1;
	CLWB(p + 8);
	pthread_create(&thread, NULL, writer, p);
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	p[16] = 1;
	CLWB(p + 16);
	SFENCE();
	return 0;
}
