/* SPDX-License-Identifier: BSD-3-Clause */
/* Readers and writers, spin locks, barriers, once, semaphores. */
#include "threads.h"

#include <semaphore.h>

enum { THREADS = 6, ROUNDS = 50 };

static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_barrier_t barrier;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static sem_t semaphore;
static int value, copy, readers_saw_difference, spun, serial, initialised, inside, too_many;
static int phase[THREADS];

static void *read_or_write(void *argument)
{
	long number = (long)argument;

	for (int i = 0; i < ROUNDS; i++) {
		if (number % 3 == 0) {
			pthread_rwlock_wrlock(&rw);
			value++;
			sched_yield();
			copy++;
		} else {
			pthread_rwlock_rdlock(&rw);
			sched_yield();
			readers_saw_difference += value != copy;
		}
		pthread_rwlock_unlock(&rw);
	}
	return NULL;
}

static void *spin_a_little(void *argument)
{
	for (int i = 0; i < ROUNDS; i++) {
		int before;

		pthread_spin_lock(&spin);
		before = spun;
		sched_yield();
		spun = before + 1;
		pthread_spin_unlock(&spin);
	}
	return argument;
}

static void *meet(void *argument)
{
	long number = (long)argument;

	for (int i = 0; i < ROUNDS; i++) {
		phase[number] = i;
		if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
			serial++;
		for (int j = 0; j < THREADS; j++)
			if (phase[j] != i)
				abort();
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

static void initialise(void)
{
	sched_yield();
	usleep(1000);
	initialised++;
}

static void *initialise_once(void *argument)
{
	pthread_once(&once, initialise);
	if (initialised != 1)
		abort();
	return argument;
}

static void *enter_two_at_a_time(void *argument)
{
	for (int i = 0; i < ROUNDS; i++) {
		sem_wait(&semaphore);
		if (__atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST) > 2)
			too_many++;
		sched_yield();
		__atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
		sem_post(&semaphore);
	}
	return argument;
}

static void *try_locks(void *argument)
{
	struct timespec past = { 1, 0 };

	say("read beside a reader: %d", pthread_rwlock_tryrdlock(&rw));
	say("write beside a reader: %d", pthread_rwlock_trywrlock(&rw) == EBUSY);
	pthread_rwlock_unlock(&rw);
	say("timed write: %d", pthread_rwlock_timedwrlock(&rw, &past) == ETIMEDOUT);
	say("empty semaphore: %d", sem_trywait(&semaphore) < 0 && errno == EAGAIN);
	say("timed semaphore: %d", sem_timedwait(&semaphore, &past) < 0 && errno == ETIMEDOUT);
	return argument;
}

static void all(void *(*function)(void *))
{
	pthread_t thread[THREADS];

	for (long i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, function, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

int main(void)
{
	int left;

	pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
	pthread_barrier_init(&barrier, NULL, THREADS);
	sem_init(&semaphore, 0, 2);
	all(read_or_write);
	say("written %d %d, differences %d", value, copy, readers_saw_difference);
	all(spin_a_little);
	say("spun %d", spun);
	all(meet);
	say("serial %d, destroyed %d", serial, pthread_barrier_destroy(&barrier));
	all(initialise_once);
	say("initialised %d", initialised);
	all(enter_two_at_a_time);
	sem_getvalue(&semaphore, &left);
	say("too many %d, left %d", too_many, left);
	sem_wait(&semaphore);
	sem_wait(&semaphore);
	pthread_rwlock_rdlock(&rw);
	run(try_locks);
	pthread_rwlock_unlock(&rw);
	pthread_rwlock_wrlock(&rw);
	say("write twice: %d", pthread_rwlock_wrlock(&rw) == EDEADLK);
	pthread_rwlock_unlock(&rw);
	return 0;
}
