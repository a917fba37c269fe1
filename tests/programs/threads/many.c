/* SPDX-License-Identifier: BSD-3-Clause */
/* Many threads on common lines: nothing is lost or invented. */
/* options: --disable redundant-flush */
/* threads: yes */
#include "../pm.h"

#include <pthread.h>

enum { THREADS = 8, ROUNDS = 20000 };

static long *p;

static void *worker(void *argument)
{
	long id = (long)argument;

	for (int i = 0; i < ROUNDS; i++) {
		p[id] = i;
		CLWB(p + id);
		SFENCE();
	}
	if (id == 3)
		p[64] = id; /* expect: missing-flush */
	WHEN_FIXED(if (id == 3) PERSIST(p + 64));
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread[THREADS];

	(void)argc;
	p = pm_map(argv);
	for (long i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, worker, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	return 0;
}
