/* command: check */
/* threads: those that wait end in their own functions */
/* A recovery whose threads lock in different orders, if it finds an operation half done. */
#include "../pm.h"

#include <pthread.h>

struct pm {
	_Alignas(64) volatile uint64_t begun;
	_Alignas(64) volatile uint64_t done;
};

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;

static void *first(void *unused)
{
	pthread_mutex_lock(&a);
	WHEN_BUGGY(pthread_barrier_wait(&both);)
	pthread_mutex_lock(&b);
	pthread_mutex_unlock(&b);
	pthread_mutex_unlock(&a);
	return unused;
}

static void *second(void *unused)
{
	WHEN_FIXED(pthread_mutex_lock(&a);)
	WHEN_BUGGY(pthread_mutex_lock(&b); pthread_barrier_wait(&both);)
	WHEN_FIXED(pthread_mutex_lock(&b);)
	WHEN_BUGGY(pthread_mutex_lock(&a);) /* expect: crash-symptom */
	pthread_mutex_unlock(&a);
	pthread_mutex_unlock(&b);
	return unused;
}

int main(int argc, char **argv)
{
	struct pm *pm = pm_map(argv);
	pthread_t thread[2];

	(void)argc;
	if (pm->begun && !pm->done) {
		pthread_barrier_init(&both, NULL, 2);
		pthread_create(&thread[0], NULL, first, NULL);
		pthread_create(&thread[1], NULL, second, NULL);
		pthread_join(thread[0], NULL);
		pthread_join(thread[1], NULL);
	}
	pm->begun = 1;
	PERSIST(&pm->begun);
	pm->done = 1;
	PERSIST(&pm->done);
	return 0;
}
