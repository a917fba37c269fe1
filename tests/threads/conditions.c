/* SPDX-License-Identifier: BSD-3-Clause */
/* Condition variables: a bounded queue, broadcasts, time-outs on both clocks. */
#include "threads.h"

enum { ROOM = 4, ITEMS = 200, THREADS = 4 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER, not_full = PTHREAD_COND_INITIALIZER;
static int queue[ROOM], used, sum;

static void *produce(void *argument)
{
	for (int i = 1; i <= ITEMS; i++) {
		pthread_mutex_lock(&lock);
		while (used == ROOM)
			pthread_cond_wait(&not_full, &lock);
		queue[used++] = i;
		pthread_cond_signal(&not_empty);
		pthread_mutex_unlock(&lock);
	}
	return argument;
}

static void *consume(void *argument)
{
	for (int i = 0; i < ITEMS; i++) {
		pthread_mutex_lock(&lock);
		while (used == 0)
			pthread_cond_wait(&not_empty, &lock);
		sum += queue[--used];
		pthread_cond_signal(&not_full);
		pthread_mutex_unlock(&lock);
	}
	return argument;
}

static int gate, passed;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;

static void *wait_at_gate(void *argument)
{
	pthread_mutex_lock(&lock);
	while (!gate)
		pthread_cond_wait(&opened, &lock);
	passed++;
	pthread_mutex_unlock(&lock);
	return argument;
}

static struct timespec in_20_ms(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	time.tv_nsec += 20000000;
	if (time.tv_nsec >= 1000000000)
		time.tv_sec++, time.tv_nsec -= 1000000000;
	return time;
}

static void *time_out(void *argument)
{
	struct timespec date = in_20_ms(CLOCK_REALTIME), later = in_20_ms(CLOCK_MONOTONIC), now;
	pthread_condattr_t attributes;
	pthread_cond_t monotonic;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&monotonic, &attributes);
	pthread_mutex_lock(&lock);
	say("date: %d", pthread_cond_timedwait(&opened, &lock, &date) == ETIMEDOUT);
	say("locked again: %d", pthread_mutex_trylock(&lock) == EBUSY);
	say("monotonic: %d", pthread_cond_timedwait(&monotonic, &lock, &later) == ETIMEDOUT);
	clock_gettime(CLOCK_MONOTONIC, &now);
	say("not too early: %d", now.tv_sec > later.tv_sec || (now.tv_sec == later.tv_sec &&
							       now.tv_nsec >= later.tv_nsec));
	later = in_20_ms(CLOCK_MONOTONIC);
	say("clockwait: %d",
	    pthread_cond_clockwait(&opened, &lock, CLOCK_MONOTONIC, &later) == ETIMEDOUT);
	pthread_mutex_unlock(&lock);
	pthread_cond_destroy(&monotonic);
	return argument;
}

int main(void)
{
	pthread_t thread[2 * THREADS];

	for (int i = 0; i < THREADS; i++) {
		pthread_create(&thread[i], NULL, produce, NULL);
		pthread_create(&thread[THREADS + i], NULL, consume, NULL);
	}
	for (int i = 0; i < 2 * THREADS; i++)
		pthread_join(thread[i], NULL);
	say("sum %d", sum);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, wait_at_gate, NULL);
	usleep(1000);
	pthread_mutex_lock(&lock);
	gate = 1;
	pthread_cond_broadcast(&opened);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	say("passed %d", passed);
	run(time_out);
	say("destroyed %d", pthread_cond_destroy(&opened));
	return 0;
}
