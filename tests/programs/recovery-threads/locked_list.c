/* merged: calls of abort become one */
/* command: check */
/* variants: 2 */
/* threads: work ends in the thread's function */
/*
 * Several threads put nodes into a list under a lock; what is linked must be persistent. BUG 1: the
 * node is not persisted before it is linked. BUG 2: the head is persisted after the lock was given
 * back, and the next thread links to what may not be there: harmless here, as the head is read
 * through the same line, but the count behind it is not.
 */
#include "../pm.h"

#include <pthread.h>

enum { THREADS = 4, EACH = 3 };

struct node {
	_Alignas(64) uint64_t value;
	uint64_t next;
};

struct pm {
	_Alignas(64) volatile uint64_t head; /* index + 1 */
	_Alignas(64) volatile uint64_t count;
	_Alignas(64) struct node node[THREADS * EACH];
};

static struct pm *pm;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t used;

static void *insert(void *argument)
{
	for (uint64_t i = 0; i < EACH; i++) {
		struct node *node;

		pthread_mutex_lock(&lock);
		node = &pm->node[used++];
		node->value = 1000 + (uintptr_t)argument;
		node->next = pm->head;
#if BUG != 1
		PERSIST(node);
#endif
		pm->head = used;
#if BUG == 2
		pm->count = used;
		PERSIST(&pm->count);
		PERSIST(&pm->head);
#else
		PERSIST(&pm->head);
		pm->count = used;
		PERSIST(&pm->count);
#endif
		pthread_mutex_unlock(&lock);
#if BUG == 1
		PERSIST(node);
#endif
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread[THREADS];
	uint64_t length = 0;

	(void)argc;
	pm = pm_map(argv);
	if (pm->head || pm->count) {
		uint64_t count = pm->count;

		for (uint64_t at = pm->head; at; at = pm->node[at - 1].next) /* expect-1: cross-failure-race */
			if (length++ > THREADS * EACH || pm->node[at - 1].value < 1000) /* expect-1: cross-failure-race */
				abort(); /* expect-1: crash-symptom */
		if (length < count)
			abort(); /* expect-2: crash-symptom */
		return 0;
	}
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, insert, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	return 0;
}
