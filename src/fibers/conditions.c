/* SPDX-License-Identifier: BSD-3-Clause */
/* Condition variables and futexes: waiting for a wake-up, without a state of their own. */
#include "fibers/fibers.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/execution.h"

/* ---- condition variables ---- */

enum { CONDITION_SHARED = 1, CONDITION_MONOTONIC = 2 }; /* in __wrefs */

static void lock_again(pthread_mutex_t **mutex)
{
	if (*mutex)
		pthread_mutex_lock(*mutex);
}

/* Without giving way: nothing may come between this and the wait. */
static int unlock(pthread_mutex_t *mutex)
{
	int result = REAL(pthread_mutex_unlock)(mutex);

	if (result == 0)
		fiber_wake(mutex, 1);
	return result;
}

/*
 * Another process may signal it, unseen: then every wait ends now and then, which condition
 * variables may do.
 */
static bool wait_shared(pthread_cond_t *condition, uint64_t deadline)
{
	return fiber_wait_outside(condition, deadline);
}

static int wait_condition(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t deadline)
{
	/* A thread that is cancelled here has the mutex when its clean-up handlers run. */
	__attribute__((cleanup(lock_again))) pthread_mutex_t *locked = mutex;
	bool in_time;
	int result;

	fiber_test_cancel();
	result = unlock(mutex);
	if (result) {
		locked = NULL;
		return result;
	}
	if (condition->__data.__wrefs & CONDITION_SHARED)
		in_time = wait_shared(condition, deadline);
	else
		in_time = fiber_wait(condition, deadline);
	fiber_test_cancel();
	locked = NULL;
	result = pthread_mutex_lock(mutex);
	return result ? result : in_time ? 0 : ETIMEDOUT;
}

PUBLIC int pthread_cond_wait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex)
{
	return fibers_on ? wait_condition(condition, mutex, FIBER_NEVER)
			 : REAL(pthread_cond_wait)(condition, mutex);
}

PUBLIC int pthread_cond_timedwait(pthread_cond_t *restrict condition,
				  pthread_mutex_t *restrict mutex,
				  const struct timespec *restrict time)
{
	clockid_t clock =
		condition->__data.__wrefs & CONDITION_MONOTONIC ? CLOCK_MONOTONIC : CLOCK_REALTIME;

	if (!fibers_on)
		return REAL(pthread_cond_timedwait)(condition, mutex, time);
	return wait_condition(condition, mutex, clock_deadline(clock, time));
}

PUBLIC int pthread_cond_clockwait(pthread_cond_t *restrict condition,
				  pthread_mutex_t *restrict mutex, clockid_t clock,
				  const struct timespec *restrict time)
{
	if (!fibers_on)
		return REAL(pthread_cond_clockwait)(condition, mutex, clock, time);
	return wait_condition(condition, mutex, clock_deadline(clock, time));
}

PUBLIC int pthread_cond_signal(pthread_cond_t *condition)
{
	if (!fibers_on)
		return REAL(pthread_cond_signal)(condition);
	if (condition->__data.__wrefs & CONDITION_SHARED)
		REAL(pthread_cond_signal)(condition);
	fiber_wake(condition, 1);
	fiber_point(POINT_SYNC);
	return 0;
}

PUBLIC int pthread_cond_broadcast(pthread_cond_t *condition)
{
	if (!fibers_on)
		return REAL(pthread_cond_broadcast)(condition);
	if (condition->__data.__wrefs & CONDITION_SHARED)
		REAL(pthread_cond_broadcast)(condition);
	fiber_wake(condition, UINT32_MAX);
	fiber_point(POINT_SYNC);
	return 0;
}

/* ---- futexes, through syscall() ---- */

static long wait_futex(const uint32_t *word, uint32_t value, uint64_t deadline, bool shared)
{
	if (__atomic_load_n(word, __ATOMIC_SEQ_CST) != value) {
		fiber_point(POINT_SYNC);
		errno = EAGAIN;
		return -1;
	}
	if ((shared ? fiber_wait_outside : fiber_wait)(word, deadline))
		return 0;
	errno = ETIMEDOUT;
	return -1;
}

static long futex(long arguments[6], bool *handled)
{
	const uint32_t *word = (const uint32_t *)arguments[0];
	const struct timespec *time = (const struct timespec *)arguments[3];
	int operation = arguments[1] & FUTEX_CMD_MASK;
	bool shared = !(arguments[1] & FUTEX_PRIVATE_FLAG);
	clockid_t clock = arguments[1] & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC;
	unsigned woken;

	*handled = true;
	switch (operation) {
	case FUTEX_WAIT:
		return wait_futex(word, arguments[2], time ? clock_deadline_in(time) : FIBER_NEVER,
				  shared && fibers_live() < 2);
	case FUTEX_WAIT_BITSET:
		return wait_futex(word, arguments[2], clock_deadline(clock, time),
				  shared && fibers_live() < 2);
	case FUTEX_WAKE:
	case FUTEX_WAKE_BITSET:
		woken = fiber_wake(word, arguments[2] < 0 ? UINT32_MAX : arguments[2]);
		if (shared && woken < (uint64_t)arguments[2])
			woken += REAL(syscall)(SYS_futex, word, arguments[1],
					       arguments[2] - (long)woken, 0, 0, arguments[5]);
		fiber_point(POINT_SYNC);
		return woken;
	default:
		*handled = false;
		session_limit(runtime_session, thread_owner(),
			      "the program uses futexes in a way that its threads cannot be "
			      "followed in: they may wait without end");
		return 0;
	}
}

bool fiber_system_call(long number, long arguments[6], long *result)
{
	bool handled = true;

	if (number == SYS_futex)
		*result = futex(arguments, &handled);
	else if (number == SYS_gettid && fiber_current->number)
		*result = fiber_thread_id(fiber_current);
	else if (number == SYS_sched_yield)
		*result = sched_yield();
	else
		handled = false;
	return handled;
}
