/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics interrupted by handlers with atomics on each other's lines: no deadlock. */
/* threads: yes */
/* options: --disable redundant-flush */
/* limit: a signal handler interrupted the analysis */
#include "../pm.h"

#include <pthread.h>
#include <signal.h>

static char *p;
static volatile int stop;
static __thread long me;

static void handler(int number)
{
	(void)number;
	__atomic_fetch_add((long *)(p + 64 * (1 - me)), 1, __ATOMIC_SEQ_CST);
}

static void *worker(void *argument)
{
	me = (long)argument;
	while (!stop)
		__atomic_fetch_add((long *)(p + 64 * me), 1, __ATOMIC_SEQ_CST);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread[2];

	(void)argc;
	p = pm_map(argv);
	signal(SIGUSR1, handler);
	for (long i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, worker, (void *)i);
	for (int i = 0; i < 20000; i++) {
		pthread_kill(thread[0], SIGUSR1);
		pthread_kill(thread[1], SIGUSR1);
		if (i % 100 == 0)
			usleep(100);
	}
	stop = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	CLFLUSH(p);
	CLFLUSH(p + 64);
	p[128] = 1; /* expect: missing-flush */
	WHEN_FIXED(CLFLUSH(p + 128));
	return 0;
}
