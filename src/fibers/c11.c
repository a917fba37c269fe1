/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * C11's threads, which the C library builds on its own, unseen, pthread functions. Its types are
 * those of pthreads under another name.
 */
#include "fibers/fibers.h"

#include <errno.h>
#include <stdlib.h>
#include <threads.h>

static int c11_result(int result)
{
	switch (result) {
	case 0:
		return thrd_success;
	case ENOMEM:
	case EAGAIN:
		return thrd_nomem;
	case EBUSY:
		return thrd_busy;
	case ETIMEDOUT:
		return thrd_timedout;
	default:
		return thrd_error;
	}
}

struct start {
	thrd_start_t function;
	void *argument;
};

static void *start_thread(void *argument)
{
	struct start start = *(struct start *)argument;

	free(argument);
	return (void *)(intptr_t)start.function(start.argument);
}

PUBLIC int thrd_create(thrd_t *thread, thrd_start_t function, void *argument)
{
	struct start *start;
	int result;

	if (!fibers_on)
		return REAL(thrd_create)(thread, function, argument);
	start = malloc(sizeof(*start));
	if (!start)
		return thrd_nomem;
	*start = (struct start){ function, argument };
	result = pthread_create(thread, NULL, start_thread, start);
	if (result)
		free(start);
	return c11_result(result);
}

PUBLIC int thrd_join(thrd_t thread, int *result)
{
	void *value;
	int joined;

	if (!fibers_on)
		return REAL(thrd_join)(thread, result);
	joined = pthread_join(thread, &value);
	if (joined == 0 && result)
		*result = (int)(intptr_t)value;
	return c11_result(joined);
}

PUBLIC int thrd_detach(thrd_t thread)
{
	return fibers_on ? c11_result(pthread_detach(thread)) : REAL(thrd_detach)(thread);
}

PUBLIC void thrd_exit(int result)
{
	pthread_exit((void *)(intptr_t)result);
}

PUBLIC void thrd_yield(void)
{
	sched_yield();
}

PUBLIC int thrd_sleep(const struct timespec *time, struct timespec *left)
{
	int result = nanosleep(time, left);

	return result == 0 ? 0 : errno == EINTR ? -1 : -2;
}

PUBLIC int mtx_lock(mtx_t *mutex)
{
	return fibers_on ? c11_result(pthread_mutex_lock((pthread_mutex_t *)mutex))
			 : REAL(mtx_lock)(mutex);
}

PUBLIC int mtx_timedlock(mtx_t *restrict mutex, const struct timespec *restrict time)
{
	return fibers_on ? c11_result(pthread_mutex_timedlock((pthread_mutex_t *)mutex, time))
			 : REAL(mtx_timedlock)(mutex, time);
}

PUBLIC int mtx_trylock(mtx_t *mutex)
{
	return fibers_on ? c11_result(pthread_mutex_trylock((pthread_mutex_t *)mutex))
			 : REAL(mtx_trylock)(mutex);
}

PUBLIC int mtx_unlock(mtx_t *mutex)
{
	return fibers_on ? c11_result(pthread_mutex_unlock((pthread_mutex_t *)mutex))
			 : REAL(mtx_unlock)(mutex);
}

PUBLIC int cnd_wait(cnd_t *condition, mtx_t *mutex)
{
	return fibers_on ? c11_result(pthread_cond_wait((pthread_cond_t *)condition,
							(pthread_mutex_t *)mutex))
			 : REAL(cnd_wait)(condition, mutex);
}

PUBLIC int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex,
			 const struct timespec *restrict time)
{
	return fibers_on ? c11_result(pthread_cond_timedwait((pthread_cond_t *)condition,
							     (pthread_mutex_t *)mutex, time))
			 : REAL(cnd_timedwait)(condition, mutex, time);
}

PUBLIC int cnd_signal(cnd_t *condition)
{
	return fibers_on ? c11_result(pthread_cond_signal((pthread_cond_t *)condition))
			 : REAL(cnd_signal)(condition);
}

PUBLIC int cnd_broadcast(cnd_t *condition)
{
	return fibers_on ? c11_result(pthread_cond_broadcast((pthread_cond_t *)condition))
			 : REAL(cnd_broadcast)(condition);
}

PUBLIC void call_once(once_flag *once, void (*function)(void))
{
	if (fibers_on)
		pthread_once((pthread_once_t *)once, function);
	else
		REAL(call_once)(once, function);
}
