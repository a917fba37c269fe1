/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Locks of all kinds. The C library's own try functions decide whether a lock is free, so its rules
 * (types, owners, robustness, preference) hold; only waiting is done here.
 */
#include "fibers/fibers.h"
#include "races/races.h"

#include <errno.h>
#include <semaphore.h>
#include <stdio.h>

/* ---- waiting for any of them ---- */

/*
 * Tries until it is there. `trial` returns EBUSY if not. A lock that other processes share may be
 * freed by one of them.
 */
static int acquire(void *lock, int (*trial)(void *lock), uint64_t deadline, bool shared)
{
	int result;

	while ((result = trial(lock)) == EBUSY) {
		if (!(shared ? fiber_wait_outside : fiber_wait)(lock, deadline))
			return ETIMEDOUT;
		fiber_current->first_in_line = true; /* if somebody else was faster again */
	}
	fiber_current->first_in_line = false;
	fiber_point(POINT_SYNC);
	return result;
}

static int release(void *lock, unsigned count, int result)
{
	if (result == 0) {
		fiber_wake(lock, count);
		fiber_point(POINT_SYNC);
	}
	return result;
}

static bool is_valid(const struct timespec *time)
{
	return time->tv_nsec >= 0 && time->tv_nsec < 1000000000;
}

static bool is_clock(clockid_t clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;
}

/* ---- mutexes ---- */

enum { MUTEX_SHARED = 128, MUTEX_TYPE = 3 };

static int try_mutex(void *mutex)
{
	return REAL(pthread_mutex_trylock)(mutex);
}

static bool owns(const pthread_mutex_t *mutex)
{
	return mutex->__data.__owner == fiber_thread_id(fiber_current);
}

static int lock_mutex(pthread_mutex_t *mutex, uint64_t deadline)
{
	/* trylock says EBUSY where lock knows better. */
	if ((mutex->__data.__kind & MUTEX_TYPE) == PTHREAD_MUTEX_ERRORCHECK && owns(mutex))
		return EDEADLK;
	return acquire(mutex, try_mutex, deadline, mutex->__data.__kind & MUTEX_SHARED);
}

PUBLIC int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	return fibers_on ? lock_mutex(mutex, FIBER_NEVER) : REAL(pthread_mutex_lock)(mutex);
}

PUBLIC int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex,
				   const struct timespec *restrict time)
{
	if (!fibers_on)
		return REAL(pthread_mutex_timedlock)(mutex, time);
	return lock_mutex(mutex, clock_deadline(CLOCK_REALTIME, time));
}

PUBLIC int pthread_mutex_clocklock(pthread_mutex_t *restrict mutex, clockid_t clock,
				   const struct timespec *restrict time)
{
	if (!fibers_on)
		return REAL(pthread_mutex_clocklock)(mutex, clock, time);
	return is_clock(clock) ? lock_mutex(mutex, clock_deadline(clock, time)) : EINVAL;
}

PUBLIC int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	int result = REAL(pthread_mutex_trylock)(mutex);

	if (fibers_on)
		fiber_point(result == EBUSY ? POINT_SPIN : POINT_SYNC);
	return result;
}

PUBLIC int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	int result = REAL(pthread_mutex_unlock)(mutex);

	return fibers_on ? release(mutex, 1, result) : result;
}

/* ---- readers and writers ---- */

static int try_read(void *lock)
{
	return REAL(pthread_rwlock_tryrdlock)(lock);
}

static int try_write(void *lock)
{
	return REAL(pthread_rwlock_trywrlock)(lock);
}

static int lock_rw(pthread_rwlock_t *lock, int (*trial)(void *lock), uint64_t deadline)
{
	if (lock->__data.__cur_writer == fiber_thread_id(fiber_current))
		return EDEADLK;
	return acquire(lock, trial, deadline, lock->__data.__shared);
}

#define RW_LOCKS(name, trial)                                                                      \
	PUBLIC int pthread_rwlock_##name##lock(pthread_rwlock_t *lock)                             \
	{                                                                                          \
		return fibers_on ? lock_rw(lock, trial, FIBER_NEVER)                               \
				 : REAL(pthread_rwlock_##name##lock)(lock);                        \
	}                                                                                          \
	PUBLIC int pthread_rwlock_try##name##lock(pthread_rwlock_t *lock)                          \
	{                                                                                          \
		int result = trial(lock);                                                          \
		if (fibers_on)                                                                     \
			fiber_point(result == EBUSY ? POINT_SPIN : POINT_SYNC);                    \
		return result;                                                                     \
	}                                                                                          \
	PUBLIC int pthread_rwlock_timed##name##lock(pthread_rwlock_t *restrict lock,               \
						    const struct timespec *restrict time)          \
	{                                                                                          \
		if (!fibers_on)                                                                    \
			return REAL(pthread_rwlock_timed##name##lock)(lock, time);                 \
		if (!is_valid(time))                                                               \
			return EINVAL;                                                             \
		return lock_rw(lock, trial, clock_deadline(CLOCK_REALTIME, time));                 \
	}                                                                                          \
	PUBLIC int pthread_rwlock_clock##name##lock(pthread_rwlock_t *restrict lock,               \
						    clockid_t clock,                               \
						    const struct timespec *restrict time)          \
	{                                                                                          \
		if (!fibers_on)                                                                    \
			return REAL(pthread_rwlock_clock##name##lock)(lock, clock, time);          \
		if (!is_valid(time) || !is_clock(clock))                                           \
			return EINVAL;                                                             \
		return lock_rw(lock, trial, clock_deadline(clock, time));                          \
	}                                                                                          \
	struct ignore_semicolon

RW_LOCKS(rd, try_read);
RW_LOCKS(wr, try_write);

PUBLIC int pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
	int result = REAL(pthread_rwlock_unlock)(lock);

	return fibers_on ? release(lock, UINT32_MAX, result) : result;
}

/* ---- spin locks ---- */

PUBLIC int pthread_spin_lock(pthread_spinlock_t *lock)
{
	if (!fibers_on)
		return REAL(pthread_spin_lock)(lock);
	while (REAL(pthread_spin_trylock)(lock) == EBUSY)
		fiber_wait_outside((const void *)lock, FIBER_NEVER);
	fiber_point(POINT_SYNC);
	return 0;
}

PUBLIC int pthread_spin_trylock(pthread_spinlock_t *lock)
{
	int result = REAL(pthread_spin_trylock)(lock);

	if (fibers_on)
		fiber_point(result == EBUSY ? POINT_SPIN : POINT_SYNC);
	return result;
}

PUBLIC int pthread_spin_unlock(pthread_spinlock_t *lock)
{
	int result;

	buffer_drain();
	causality_release((const void *)lock);
	if (runtime_races)
		races_release((const void *)lock, false, FRAME->return_address);
	result = REAL(pthread_spin_unlock)(lock);

	return fibers_on ? release((void *)lock, 1, result) : result;
}

/* ---- semaphores ---- */

static int try_semaphore(void *semaphore)
{
	return REAL(sem_trywait)(semaphore) == 0 ? 0 : EBUSY;
}

static int wait_semaphore(sem_t *semaphore, uint64_t deadline)
{
	int saved_errno = errno, result;

	fiber_test_cancel();
	fiber_may_be_interrupted(true);
	for (;;) {
		result = try_semaphore(semaphore);
		if (result == 0)
			break;
		if (fiber_current->interrupted) {
			fiber_was_interrupted();
			return -1;
		}
		/* Other processes may know it: by name, or in shared memory. */
		if (!(fibers_live() < 2 ? fiber_wait_outside : fiber_wait)(semaphore, deadline)) {
			errno = ETIMEDOUT;
			return -1;
		}
		fiber_test_cancel();
	}
	errno = saved_errno;
	fiber_point(POINT_SYNC);
	return 0;
}

PUBLIC int sem_wait(sem_t *semaphore)
{
	return fibers_on ? wait_semaphore(semaphore, FIBER_NEVER) : REAL(sem_wait)(semaphore);
}

PUBLIC int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict time)
{
	if (!fibers_on || !is_valid(time))
		return REAL(sem_timedwait)(semaphore, time);
	return wait_semaphore(semaphore, clock_deadline(CLOCK_REALTIME, time));
}

PUBLIC int sem_clockwait(sem_t *restrict semaphore, clockid_t clock,
			 const struct timespec *restrict time)
{
	if (!fibers_on || !is_valid(time) || !is_clock(clock))
		return REAL(sem_clockwait)(semaphore, clock, time);
	return wait_semaphore(semaphore, clock_deadline(clock, time));
}

PUBLIC int sem_trywait(sem_t *semaphore)
{
	int result = REAL(sem_trywait)(semaphore), saved_errno = errno;

	if (fibers_on)
		fiber_point(result < 0 ? POINT_SPIN : POINT_SYNC);
	errno = saved_errno;
	return result;
}

PUBLIC int sem_post(sem_t *semaphore)
{
	int result = REAL(sem_post)(semaphore);

	if (fibers_on && result == 0) {
		fiber_wake(semaphore, 1);
		fiber_point(POINT_SYNC);
	}
	return result;
}

/* ---- barriers ---- */

/* As in the C library, of which `in` is used here to count. */
struct barrier {
	uint32_t in, round, count, shared, out;
};

PUBLIC int pthread_barrier_wait(pthread_barrier_t *barrier)
{
	struct barrier *own = (struct barrier *)barrier;
	uint32_t round = own->round;

	if (!fibers_on || own->shared)
		return REAL(pthread_barrier_wait)(barrier);
	if (++own->in == own->count) {
		own->in = 0;
		own->round++;
		release(barrier, UINT32_MAX, 0);
		return PTHREAD_BARRIER_SERIAL_THREAD;
	}
	while (own->round == round)
		fiber_wait(barrier, FIBER_NEVER);
	fiber_point(POINT_SYNC);
	return 0;
}

/* The count of rounds is not what the C library expects there. */
PUBLIC int pthread_barrier_destroy(pthread_barrier_t *barrier)
{
	struct barrier *own = (struct barrier *)barrier;

	if (fibers_on && !own->shared)
		own->round = own->out = own->in = 0;
	return REAL(pthread_barrier_destroy)(barrier);
}

/* ---- once ---- */

enum { ONCE_NEVER = 0, ONCE_RUNNING = 1, ONCE_DONE = 2 };

/* An exception, or the end of the thread, leaves it undone. */
static void end_once(pthread_once_t **once)
{
	if (**once == ONCE_RUNNING)
		**once = ONCE_NEVER;
	fiber_wake(*once, UINT32_MAX);
}

/* Others may go on as soon as the function has returned. */
static __thread struct {
	pthread_once_t *once;
	void (*function)(void);
} running __attribute__((tls_model("initial-exec")));

static void run_and_release(void)
{
	pthread_once_t *once = running.once;

	running.function();
	races_synchronise(once);
}

static int once_natively(pthread_once_t *once, void (*function)(void))
{
	if (!runtime_races)
		return REAL(pthread_once)(once, function);
	running.once = once;
	running.function = function;
	return REAL(pthread_once)(once, run_and_release);
}

PUBLIC int pthread_once(pthread_once_t *once, void (*function)(void))
{
	if (!fibers_on)
		return once_natively(once, function);
	while (*once == ONCE_RUNNING)
		fiber_wait(once, FIBER_NEVER);
	if (*once != ONCE_DONE) {
		__attribute__((cleanup(end_once), unused)) pthread_once_t *running = once;

		*once = ONCE_RUNNING;
		function();
		*once = ONCE_DONE;
	}
	fiber_point(POINT_SYNC);
	return 0;
}

/* ---- streams ---- */

/*
 * Every function of stdio locks its stream, inside of the C library, where nobody can give way. So
 * a thread that has locked one itself keeps the processor, unless it waits.
 */
static void hold(int change)
{
	if (fibers_on)
		fiber_current->holds += change;
}

PUBLIC void flockfile(FILE *stream)
{
	if (fibers_on)
		while (REAL(ftrylockfile)(stream) != 0)
			fiber_wait(stream, FIBER_NEVER);
	else
		REAL(flockfile)(stream);
	hold(1);
}

PUBLIC int ftrylockfile(FILE *stream)
{
	int result = REAL(ftrylockfile)(stream);

	if (result == 0)
		hold(1);
	return result;
}

PUBLIC void funlockfile(FILE *stream)
{
	REAL(funlockfile)(stream);
	hold(-1);
	if (fibers_on)
		fiber_wake(stream, UINT32_MAX);
}
