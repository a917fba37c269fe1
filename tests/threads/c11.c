/* SPDX-License-Identifier: BSD-3-Clause */
/* C11's threads. */
#include "threads.h"

#include <stdatomic.h>
#include <stdio.h>
#include <threads.h>
#include <time.h>

static mtx_t lock, timed;
static cnd_t changed;
static once_flag once = ONCE_FLAG_INIT;
static tss_t key;
static int turns, initialised, destroyed;
static atomic_int spinning;
static thread_local int own;

static void initialise(void)
{
	initialised++;
}

static void destroy(void *value)
{
	destroyed += *(int *)value;
}

static int take_turns(void *argument)
{
	int number = *(int *)argument;

	call_once(&once, initialise);
	tss_set(key, argument);
	for (int i = 0; i < 5; i++) {
		mtx_lock(&lock);
		while (turns % 3 != number)
			cnd_wait(&changed, &lock);
		turns++;
		own++;
		cnd_broadcast(&changed);
		mtx_unlock(&lock);
		thrd_yield();
	}
	if (number == 2)
		thrd_exit(number * 100 + own);
	return number * 100 + own;
}

static int spin(void *argument)
{
	while (!atomic_load_explicit(&spinning, memory_order_acquire))
		;
	return argument != NULL;
}

static int hold(void *argument)
{
	struct timespec time;

	timespec_get(&time, TIME_UTC);
	printf("trylock %d\n", mtx_trylock(&timed) == thrd_busy);
	printf("timedlock %d\n", mtx_timedlock(&timed, &time) == thrd_timedout);
	mtx_lock(&lock);
	timespec_get(&time, TIME_UTC);
	printf("timedwait %d\n", cnd_timedwait(&changed, &lock, &time) == thrd_timedout);
	mtx_unlock(&lock);
	return argument != NULL;
}

int main(void)
{
	int number[3] = { 0, 1, 2 }, result;
	thrd_t thread[3];

	mtx_init(&lock, mtx_plain);
	mtx_init(&timed, mtx_timed);
	cnd_init(&changed);
	tss_create(&key, destroy);
	for (int i = 0; i < 3; i++)
		thrd_create(&thread[i], take_turns, &number[i]);
	for (int i = 0; i < 3; i++) {
		thrd_join(thread[i], &result);
		printf("result %d\n", result);
	}
	printf("turns %d, initialised %d, destroyed %d\n", turns, initialised, destroyed);
	thrd_create(&thread[0], spin, &lock);
	thrd_sleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	atomic_store(&spinning, 1);
	thrd_join(thread[0], &result);
	printf("spun %d\n", result);
	mtx_lock(&timed);
	thrd_create(&thread[0], hold, NULL);
	thrd_join(thread[0], &result);
	mtx_unlock(&timed);
	return 0;
}
