/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Thread functions. Each synchronisation call executes locked instructions, so it completes the
 * caller's flushes like a fence: after the call for those that take something, before it for
 * those that give something away. The end of a thread orders nothing.
 */
#include "runtime/runtime.h"

#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdlib.h>
#include <threads.h>

/*
 * A lock inside prebuilt libpmem* orders nothing, like what libc does at the end of the program:
 * a program that needs it relies on how the library happens to be written.
 */
static void fence(const struct frame *frame)
{
	if (__perdure_inline.pending && runtime_session && modules_is_libpmem(frame) &&
	    !modules_instrumented((void *)frame->return_address))
		return;
	event_fence(PERDURE_RMW_FENCE, frame);
}

#define AFTER(name, parameters, call)                                                              \
	PUBLIC int name parameters                                                                 \
	{                                                                                          \
		int result = REAL(name) call;                                                      \
		fence(FRAME);                                                                      \
		return result;                                                                     \
	}                                                                                          \
	struct ignore_semicolon

#define BEFORE(name, parameters, call)                                                             \
	PUBLIC int name parameters                                                                 \
	{                                                                                          \
		fence(FRAME);                                                                      \
		return REAL(name) call;                                                            \
	}                                                                                          \
	struct ignore_semicolon

AFTER(pthread_mutex_lock, (pthread_mutex_t * m), (m));
AFTER(pthread_mutex_trylock, (pthread_mutex_t * m), (m));
AFTER(pthread_mutex_timedlock, (pthread_mutex_t *restrict m, const struct timespec *restrict t),
      (m, t));
BEFORE(pthread_mutex_unlock, (pthread_mutex_t * m), (m));
AFTER(pthread_rwlock_rdlock, (pthread_rwlock_t * l), (l));
AFTER(pthread_rwlock_tryrdlock, (pthread_rwlock_t * l), (l));
AFTER(pthread_rwlock_timedrdlock, (pthread_rwlock_t *restrict l, const struct timespec *restrict t),
      (l, t));
AFTER(pthread_rwlock_wrlock, (pthread_rwlock_t * l), (l));
AFTER(pthread_rwlock_trywrlock, (pthread_rwlock_t * l), (l));
AFTER(pthread_rwlock_timedwrlock, (pthread_rwlock_t *restrict l, const struct timespec *restrict t),
      (l, t));
BEFORE(pthread_rwlock_unlock, (pthread_rwlock_t * l), (l));
AFTER(pthread_spin_lock, (pthread_spinlock_t * l), (l));
AFTER(pthread_spin_trylock, (pthread_spinlock_t * l), (l));
BEFORE(pthread_barrier_wait, (pthread_barrier_t * b), (b));
AFTER(pthread_join, (pthread_t t, void **r), (t, r));
BEFORE(pthread_once, (pthread_once_t * o, void (*f)(void)), (o, f));
AFTER(sem_wait, (sem_t * s), (s));
AFTER(sem_trywait, (sem_t * s), (s));
AFTER(sem_timedwait, (sem_t *restrict s, const struct timespec *restrict t), (s, t));
BEFORE(sem_post, (sem_t * s), (s));
BEFORE(thrd_create, (thrd_t * t, thrd_start_t f, void *a), (t, f, a));
AFTER(thrd_join, (thrd_t t, int *r), (t, r));
BEFORE(cnd_signal, (cnd_t * c), (c));
BEFORE(cnd_broadcast, (cnd_t * c), (c));
BEFORE(cnd_wait, (cnd_t * c, mtx_t *m), (c, m));
BEFORE(cnd_timedwait, (cnd_t *restrict c, mtx_t *restrict m, const struct timespec *restrict t),
       (c, m, t));
AFTER(mtx_timedlock, (mtx_t *restrict m, const struct timespec *restrict t), (m, t));
AFTER(mtx_lock, (mtx_t * m), (m));
AFTER(mtx_trylock, (mtx_t * m), (m));
BEFORE(mtx_unlock, (mtx_t * m), (m));

/* pthread_spin_unlock is a plain store: it orders nothing. */

PUBLIC int pthread_cond_wait(pthread_cond_t *restrict c, pthread_mutex_t *restrict m)
{
	fence(FRAME);
	return REAL(pthread_cond_wait)(c, m);
}

PUBLIC int pthread_cond_timedwait(pthread_cond_t *restrict c, pthread_mutex_t *restrict m,
				  const struct timespec *restrict t)
{
	fence(FRAME);
	return REAL(pthread_cond_timedwait)(c, m, t);
}

PUBLIC int pthread_cond_signal(pthread_cond_t *c)
{
	fence(FRAME);
	return REAL(pthread_cond_signal)(c);
}

PUBLIC int pthread_cond_broadcast(pthread_cond_t *c)
{
	fence(FRAME);
	return REAL(pthread_cond_broadcast)(c);
}

/* ---- start ---- */

struct start {
	void *(*function)(void *);
	void *argument;
};

static void *start_thread(void *argument)
{
	struct start start = *(struct start *)argument;

	free(argument);
	return stack_call_thread(start.function, start.argument);
}

PUBLIC int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes,
			  void *(*function)(void *), void *restrict argument)
{
	struct start *start;
	int result;

	if (!runtime_session)
		return REAL(pthread_create)(thread, attributes, function, argument);
	fence(FRAME);
	runtime_session->lines.concurrent = 1;
	start = malloc(sizeof(*start));
	if (!start)
		return REAL(pthread_create)(thread, attributes, function, argument);
	*start = (struct start){ function, argument };
	result = REAL(pthread_create)(thread, attributes, start_thread, start);
	if (result)
		free(start);
	return result;
}

/* ---- jumps out of signal handlers ---- */

#define JUMPS(name)                                                                                \
	PUBLIC void name(struct __jmp_buf_tag buffer[1], int value)                                \
	{                                                                                          \
		thread_abandon();                                                                  \
		REAL(name)(buffer, value);                                                         \
		__builtin_unreachable();                                                           \
	}                                                                                          \
	struct ignore_semicolon

void __longjmp_chk(struct __jmp_buf_tag buffer[1], int value) __attribute__((noreturn));
JUMPS(longjmp);
JUMPS(_longjmp);
JUMPS(siglongjmp);
JUMPS(__longjmp_chk);
