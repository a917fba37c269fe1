/* perdure-cc: only a compiler knows what it may tear */
/* command: check */
/* options: --disable cross-failure-race --schedule det */
/*
 * yashme.txt, §4.2: one thread stores z and flushes it, another one sets an atomic flag. No crash of this run
 * shows the race, because the flag is set after the flush; but nothing orders the two, so the flag may be
 * set, and the machine crash, before. Fixed: the threads are ordered by a lock.
 */
#include "../pm.h"

#include <perdure/perdure.h>
#include <pthread.h>

struct pm {
	_Alignas(64) uint64_t z;
	_Alignas(64) uint64_t flag;
};

static struct pm *pm;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int stored;

static void *store(void *unused)
{
	pthread_mutex_lock(&lock);
	pm->z = 1;
	PERSIST(&pm->z);
	stored = 1;
	pthread_mutex_unlock(&lock);
	return unused;
}

static void *set(void *unused)
{
	int ready = 1;

#ifdef FIXED
	do {
		pthread_mutex_lock(&lock);
		ready = stored;
		pthread_mutex_unlock(&lock);
	} while (!ready);
#else
	/* Long enough, but no order. */
	for (int i = 0; i < 100; i++)
		sched_yield();
#endif
	__atomic_store_n(&pm->flag, ready, __ATOMIC_RELEASE);
	PERSIST(&pm->flag);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t a, b;

	(void)argc;
	pm = pm_map(argv);
	if (perdure_stage() > 0) {
		if (__atomic_load_n(&pm->flag, __ATOMIC_ACQUIRE))
			return pm->z > 1; /* expect: torn-store */
		return 0;
	}
	pthread_create(&a, NULL, store, NULL);
	pthread_create(&b, NULL, set, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	return 0;
}
