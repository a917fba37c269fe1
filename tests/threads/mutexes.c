/* SPDX-License-Identifier: BSD-3-Clause */
/* Mutexes of all types: who may lock twice, who is told, what a dead owner leaves. */
#include "threads.h"

static pthread_mutex_t make(int type, int robust)
{
	pthread_mutexattr_t attributes;
	pthread_mutex_t mutex;

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_settype(&attributes, type);
	if (robust)
		pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&mutex, &attributes);
	return mutex;
}

static pthread_mutex_t normal, recursive, checked, robust;
static int counter;

static void *add(void *argument)
{
	for (int i = 0; i < 1000; i++) {
		int before;

		pthread_mutex_lock(&normal);
		before = counter;
		if (i % 100 == 0)
			sched_yield();
		counter = before + 1;
		pthread_mutex_unlock(&normal);
	}
	return argument;
}

static void *use_from_another(void *argument)
{
	say("trylock of a held recursive mutex: %d", pthread_mutex_trylock(&recursive) == EBUSY);
	say("unlock of another's checked mutex: %d", pthread_mutex_unlock(&checked) == EPERM);
	return argument;
}

static void *die_with_lock(void *argument)
{
	pthread_mutex_lock(&robust);
	return argument;
}

static void *lock_late(void *argument)
{
	struct timespec soon;

	clock_gettime(CLOCK_REALTIME, &soon);
	soon.tv_nsec += 20000000;
	if (soon.tv_nsec >= 1000000000)
		soon.tv_sec++, soon.tv_nsec -= 1000000000;
	say("timed out: %d", pthread_mutex_timedlock(&normal, &soon) == ETIMEDOUT);
	return argument;
}

int main(void)
{
	pthread_t thread[8];

	normal = make(PTHREAD_MUTEX_NORMAL, 0);
	recursive = make(PTHREAD_MUTEX_RECURSIVE, 0);
	checked = make(PTHREAD_MUTEX_ERRORCHECK, 0);
	robust = make(PTHREAD_MUTEX_NORMAL, 1);
	for (int i = 0; i < 8; i++)
		pthread_create(&thread[i], NULL, add, NULL);
	for (int i = 0; i < 8; i++)
		pthread_join(thread[i], NULL);
	say("counted to %d", counter);

	pthread_mutex_lock(&recursive);
	say("again: %d", pthread_mutex_lock(&recursive));
	pthread_mutex_lock(&checked);
	say("checked, again: %d", pthread_mutex_lock(&checked) == EDEADLK);
	run(use_from_another);
	pthread_mutex_unlock(&recursive);
	run(use_from_another);
	pthread_mutex_unlock(&recursive);
	pthread_mutex_unlock(&checked);

	run(die_with_lock);
	say("owner died: %d", pthread_mutex_lock(&robust) == EOWNERDEAD);
	pthread_mutex_consistent(&robust);
	pthread_mutex_unlock(&robust);
	say("consistent: %d", pthread_mutex_lock(&robust));
	pthread_mutex_unlock(&robust);
	run(die_with_lock);
	say("owner died: %d", pthread_mutex_lock(&robust) == EOWNERDEAD);
	pthread_mutex_unlock(&robust);
	say("not recoverable: %d", pthread_mutex_lock(&robust) == ENOTRECOVERABLE);

	pthread_mutex_lock(&normal);
	run(lock_late);
	pthread_mutex_unlock(&normal);
	say("destroyed: %d", pthread_mutex_destroy(&normal));
	return 0;
}
