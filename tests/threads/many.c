/* SPDX-License-Identifier: BSD-3-Clause */
/* A thousand threads at once, and signals, names and stacks of threads. */
#include "threads.h"

enum { THREADS = 1000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_there = PTHREAD_COND_INITIALIZER;
static int there;
static __thread volatile int signalled;

static void *come(void *argument)
{
	pthread_mutex_lock(&lock);
	if (++there == THREADS)
		pthread_cond_broadcast(&all_there);
	while (there < THREADS)
		pthread_cond_wait(&all_there, &lock);
	pthread_mutex_unlock(&lock);
	return argument;
}

static void on_signal(int number)
{
	signalled = number;
}

static void *get_signal(void *argument)
{
	while (!signalled)
		usleep(1000);
	say("got signal %d", signalled == SIGUSR1);
	return argument;
}

static void *know_oneself(void *argument)
{
	pthread_attr_t attributes;
	char name[16];
	void *low;
	size_t size;

	pthread_setname_np(pthread_self(), "somebody");
	pthread_getname_np(pthread_self(), name, sizeof(name));
	pthread_getattr_np(pthread_self(), &attributes);
	pthread_attr_getstack(&attributes, &low, &size);
	say("%s, on its stack: %d", name,
	    (char *)name > (char *)low && (char *)name < (char *)low + size);
	pthread_attr_destroy(&attributes);
	return argument;
}

int main(void)
{
	static pthread_t thread[THREADS];
	pthread_attr_t small;
	long sum = 0;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	for (long i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], &small, come, (void *)i))
			abort();
	for (int i = 0; i < THREADS; i++) {
		void *result;

		pthread_join(thread[i], &result);
		sum += (long)result;
	}
	say("sum %ld", sum);
	signal(SIGUSR1, on_signal);
	pthread_create(&thread[0], NULL, get_signal, NULL);
	usleep(1000);
	pthread_kill(thread[0], SIGUSR1);
	pthread_join(thread[0], NULL);
	say("main got none: %d", signalled);
	run(know_oneself);
	return 0;
}
