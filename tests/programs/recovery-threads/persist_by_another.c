/* command: check */
/* variants: 3 */
/* options: --schedule all --preemptions 2 */
/* threads: work ends in the thread's function */
/* flags: -mclwb */
/*
 * One thread stores, another one flushes and fences, and then says that it is persistent. BUG 1: the
 * flush does not wait until the store can be seen, so it may come first. BUG 2: the store's own
 * thread flushes, but only the other one fences. BUG 3: the flag is set before the fence.
 */
#include "../pm.h"

#include <immintrin.h>
#include <pthread.h>
#include <stdatomic.h>

struct pm {
	_Alignas(64) _Atomic uint64_t data;
	_Alignas(64) _Atomic uint64_t valid;
};

static struct pm *pm;
static atomic_int stored;

static void *store(void *unused)
{
	atomic_store_explicit(&pm->data, 42, memory_order_relaxed); /* expect-1: missing-flush */ /* expect-2: missing-fence */
#if BUG == 2
	_mm_clwb(&pm->data);
#endif
	atomic_store_explicit(&stored, 1, memory_order_release);
	return unused;
}

static void *publish(void *unused)
{
#if BUG != 1
	while (!atomic_load_explicit(&stored, memory_order_acquire))
		_mm_pause();
#endif
#if BUG != 2
	_mm_clwb(&pm->data); /* expect-1: redundant-flush */
#endif
#if BUG != 3
	_mm_sfence(); /* expect-2: redundant-fence */
#endif
	atomic_store_explicit(&pm->valid, 1, memory_order_relaxed);
	_mm_clwb(&pm->valid);
	_mm_sfence();
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t thread[2];

	(void)argc;
	pm = pm_map(argv);
	if (atomic_load(&pm->valid)) {
		if (atomic_load(&pm->data) != 42)
			abort(); /* expect-1: crash-symptom */ /* expect-2: crash-symptom */ /* expect-3: crash-symptom */
		return 0;
	}
	pthread_create(&thread[0], NULL, store, NULL);
	pthread_create(&thread[1], NULL, publish, NULL);
	pthread_join(thread[0], NULL);
	pthread_join(thread[1], NULL);
	return 0;
}
