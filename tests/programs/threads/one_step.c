/* SPDX-License-Identifier: BSD-3-Clause */
/* The last store of two racing threads is the one in memory, and the one that is reported. */
/* threads: yes */
#include "../pm.h"

#include <pthread.h>

static long *p;
static pthread_barrier_t barrier;

static void *worker(void *argument)
{
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 100000; i++)
		__atomic_store_n(p, (long)argument, __ATOMIC_RELAXED);
	pthread_barrier_wait(&barrier);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread[2];

	(void)argc;
	p = pm_map(argv);
	pthread_barrier_init(&barrier, NULL, 2);
	for (long i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, worker, (void *)(i + 1));
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	PERSIST(p);
	p[8] = p[0]; /* expect: missing-flush */
	WHEN_FIXED(PERSIST(p + 8));
	return p[0] == 1 || p[0] == 2 ? 0 : 9;
}
