/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting without a function that waits. */
#include "threads.h"

#include <immintrin.h>
#include <stdatomic.h>

static atomic_int flag;
static volatile int switch_on;
static int plain;
static atomic_flag held = ATOMIC_FLAG_INIT;
static unsigned ticket_next;
static volatile unsigned ticket_serving;
static int counter;

static void *wait_for_atomic(void *argument)
{
	while (!atomic_load_explicit(&flag, memory_order_relaxed))
		;
	return argument;
}

static void *wait_for_volatile(void *argument)
{
	while (!switch_on)
		;
	return argument;
}

static void *wait_with_pause(void *argument)
{
	while (!__atomic_load_n(&plain, __ATOMIC_ACQUIRE))
		_mm_pause();
	return argument;
}

static void *wait_with_barrier(void *argument)
{
	while (!plain)
		__asm__ volatile("" ::: "memory");
	return argument;
}

static void *wait_with_assembly(void *argument)
{
	while (!plain)
		__asm__ volatile("pause" ::: "memory");
	return argument;
}

static void *lock_with_flag(void *argument)
{
	for (int i = 0; i < 100; i++) {
		while (atomic_flag_test_and_set(&held))
			;
		counter++;
		if (i % 10 == 0)
			sched_yield();
		atomic_flag_clear(&held);
	}
	return argument;
}

static void *lock_with_ticket(void *argument)
{
	for (int i = 0; i < 100; i++) {
		unsigned mine = __sync_fetch_and_add(&ticket_next, 1);

		while (ticket_serving != mine)
			;
		counter++;
		if (i % 10 == 0)
			sched_yield();
		ticket_serving = mine + 1;
	}
	return argument;
}

static void *wait_for_time(void *argument)
{
	struct timespec start, now;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - start.tv_sec) * 1000000000l + now.tv_nsec - start.tv_nsec < 3000000);
	return argument;
}

static void *set(void *argument)
{
	usleep(2000);
	atomic_store(&flag, 1);
	usleep(2000);
	switch_on = 1;
	usleep(2000);
	__atomic_store_n(&plain, 1, __ATOMIC_RELEASE);
	return argument;
}

static void together(void *(*const function[])(void *), int count)
{
	pthread_t thread[8];

	for (int i = 0; i < count; i++)
		pthread_create(&thread[i], NULL, function[i], NULL);
	for (int i = 0; i < count; i++)
		pthread_join(thread[i], NULL);
}

int main(void)
{
	together((void *(*const[])(void *)){ wait_for_atomic, wait_for_volatile, wait_with_pause,
					     wait_with_barrier, wait_with_assembly, wait_for_time,
					     set },
		 7);
	say("all set");
	together((void *(*const[])(void *)){ lock_with_flag, lock_with_flag, lock_with_flag }, 3);
	say("counted %d", counter);
	together((void *(*const[])(void *)){ lock_with_ticket, lock_with_ticket, lock_with_ticket },
		 3);
	say("counted %d", counter);
	return 0;
}
