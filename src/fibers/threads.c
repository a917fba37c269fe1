/* SPDX-License-Identifier: BSD-3-Clause */
/* pthread_create and what is done to threads. */
#include "fibers/fibers.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/single_threaded.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "binary/binary.h"
#include "races/races.h"
#include "runtime/execution.h"
#include "runtime/hooks.h"
#include "runtime/library.h"

/* ---- start ---- */

struct start {
	void *(*function)(void *);
	void *argument;
};

static void *start_thread(void *argument)
{
	struct start start = *(struct start *)argument;

	if (runtime_races) {
		__perdure_inline.fibers = 1;
		races_thread_starts(argument);
	}
	free(argument);
	return stack_call_thread(start.function, start.argument);
}

/* Hooks need some stack, too: a thread with little of it gets more, unless it brings its own. */
static bool make_roomy(const pthread_attr_t *attributes, pthread_attr_t *copy)
{
	enum { LEAST = 256 << 10 };
	size_t size = 0;
	void *stack = NULL;

	pthread_attr_getstack(attributes, &stack, &size);
	if (!size || size >= LEAST || (uintptr_t)stack + size != 0)
		return false;
	*copy = *attributes; /* shares what it points to, and is not destroyed */
	return pthread_attr_setstacksize(copy, LEAST) == 0;
}

static int create_native(pthread_t *thread, const pthread_attr_t *attributes,
			 void *(*function)(void *), void *argument)
{
	struct start *start = malloc(sizeof(*start));
	pthread_attr_t copy;
	bool roomy;
	int result;

	if (!start)
		return REAL(pthread_create)(thread, attributes, function, argument);
	*start = (struct start){ function, argument };
	if (runtime_races) {
		gate_note();
		races_synchronise(start);
	}
	roomy = attributes && make_roomy(attributes, &copy);
	result = REAL(pthread_create)(thread, roomy ? &copy : attributes, start_thread, start);
	if (result)
		free(start);
	return result;
}

PUBLIC int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes,
			  void *(*function)(void *), void *restrict argument)
{
	struct fiber *fiber;

	if (!runtime_session)
		return REAL(pthread_create)(thread, attributes, function, argument);
	binary_thread_starts();
	event_fence(PERDURE_RMW_FENCE, FRAME);
	runtime_session->lines.concurrent = 1;
	if (!fibers_on) {
		execution_note_input(INPUT_THREADS);
		return create_native(thread, attributes, function, argument);
	}
	causality_start();
	fiber = fiber_create(attributes, function, argument);
	if (!fiber)
		return EAGAIN;
	causality_release(fiber);
	*thread = (pthread_t)fiber->tls;
	__libc_single_threaded = 0;
	runtime_wants_loads = 1; /* to notice loops that wait */
	fiber_point(POINT_SYNC);
	return 0;
}

/* A thread that is none of the C library's cannot be a fiber. */
PUBLIC int clone(int (*function)(void *), void *stack, int flags, void *argument, ...)
{
	va_list list;
	pid_t *parent;
	void *tls;
	pid_t *child;

	va_start(list, argument);
	parent = va_arg(list, pid_t *);
	tls = va_arg(list, void *);
	child = va_arg(list, pid_t *);
	va_end(list);
	if (runtime_execution && flags & CLONE_VM && !(flags & CLONE_VFORK)) {
		static const char reason[] = "some of them are made with clone";

		plain_copy(runtime_session->executions.native_threads, reason, sizeof(reason));
		execution_note_input(INPUT_THREADS);
	}
	if (runtime_races)
		races_meet();
	return REAL(clone)(function, stack, flags, argument, parent, tls, child);
}

/* ---- end ---- */

static int join(pthread_t thread, void **result, uint64_t deadline)
{
	struct fiber *fiber = fiber_find(thread);

	if (!fiber)
		return ESRCH;
	if (fiber == fiber_current)
		return EDEADLK;
	if (fiber->detached)
		return EINVAL;
	fiber_test_cancel();
	while (fiber->state != FIBER_DONE) {
		bool in_time = fiber_wait(fiber, deadline);

		fiber_test_cancel();
		if (!in_time && fiber->state != FIBER_DONE)
			return ETIMEDOUT;
	}
	causality_acquire(&fiber->result);
	if (result)
		*result = fiber->result;
	fiber_free(fiber);
	fiber_point(POINT_SYNC);
	return 0;
}

PUBLIC int pthread_join(pthread_t thread, void **result)
{
	return fibers_on ? join(thread, result, FIBER_NEVER) : REAL(pthread_join)(thread, result);
}

PUBLIC int pthread_tryjoin_np(pthread_t thread, void **result)
{
	struct fiber *fiber = fibers_on ? fiber_find(thread) : NULL;

	if (!fibers_on)
		return REAL(pthread_tryjoin_np)(thread, result);
	if (fiber && fiber->state != FIBER_DONE) {
		fiber_point(POINT_SPIN);
		return EBUSY;
	}
	return join(thread, result, FIBER_NEVER);
}

PUBLIC int pthread_timedjoin_np(pthread_t thread, void **result, const struct timespec *time)
{
	return fibers_on ? join(thread, result, clock_deadline(CLOCK_REALTIME, time))
			 : REAL(pthread_timedjoin_np)(thread, result, time);
}

PUBLIC int pthread_clockjoin_np(pthread_t thread, void **result, clockid_t clock,
				const struct timespec *time)
{
	return fibers_on ? join(thread, result, clock_deadline(clock, time))
			 : REAL(pthread_clockjoin_np)(thread, result, clock, time);
}

PUBLIC int pthread_detach(pthread_t thread)
{
	struct fiber *fiber;

	if (!fibers_on)
		return REAL(pthread_detach)(thread);
	fiber = fiber_find(thread);
	if (!fiber)
		return ESRCH;
	if (fiber->detached)
		return EINVAL;
	fiber->detached = true;
	if (fiber->state == FIBER_DONE)
		fiber_free(fiber);
	return 0;
}

/* The C library unwinds the stack: up to fiber_run_until_exit. */
PUBLIC void pthread_exit(void *result)
{
	if (fibers_on)
		fiber_current->result = result;
	REAL(pthread_exit)(result);
	__builtin_unreachable();
}

/* ---- cancellation ---- */

void fiber_test_cancel(void)
{
	struct fiber *self = fiber_current;

	if (!self->cancelled || self->cancel_disabled)
		return;
	self->cancelled = false;
	self->cancel_disabled = true;
	pthread_exit(PTHREAD_CANCELED);
}

PUBLIC int pthread_cancel(pthread_t thread)
{
	struct fiber *fiber;

	if (!fibers_on)
		return REAL(pthread_cancel)(thread);
	fiber = fiber_find(thread);
	if (!fiber)
		return ESRCH;
	fiber->cancelled = true;
	if (fiber == fiber_current && fiber->cancel_asynchronous)
		fiber_test_cancel();
	if (!fiber->cancel_disabled)
		fiber_wake_one(fiber);
	fiber_point(POINT_SYNC);
	return 0;
}

PUBLIC void pthread_testcancel(void)
{
	if (fibers_on)
		fiber_test_cancel();
	else
		REAL(pthread_testcancel)();
}

PUBLIC int pthread_setcancelstate(int state, int *old)
{
	if (!fibers_on)
		return REAL(pthread_setcancelstate)(state, old);
	if (state != PTHREAD_CANCEL_ENABLE && state != PTHREAD_CANCEL_DISABLE)
		return EINVAL;
	if (old)
		*old = fiber_current->cancel_disabled ? PTHREAD_CANCEL_DISABLE
						      : PTHREAD_CANCEL_ENABLE;
	fiber_current->cancel_disabled = state == PTHREAD_CANCEL_DISABLE;
	if (fiber_current->cancel_asynchronous)
		fiber_test_cancel();
	return 0;
}

PUBLIC int pthread_setcanceltype(int type, int *old)
{
	if (!fibers_on)
		return REAL(pthread_setcanceltype)(type, old);
	if (type != PTHREAD_CANCEL_DEFERRED && type != PTHREAD_CANCEL_ASYNCHRONOUS)
		return EINVAL;
	if (old)
		*old = fiber_current->cancel_asynchronous ? PTHREAD_CANCEL_ASYNCHRONOUS
							  : PTHREAD_CANCEL_DEFERRED;
	fiber_current->cancel_asynchronous = type == PTHREAD_CANCEL_ASYNCHRONOUS;
	if (fiber_current->cancel_asynchronous)
		fiber_test_cancel();
	return 0;
}

/* ---- what threads know about themselves ---- */

PUBLIC int pthread_getattr_np(pthread_t thread, pthread_attr_t *attributes)
{
	struct fiber *fiber = fibers_on ? fiber_find(thread) : NULL;
	int result;

	if (!fiber || !fiber->mapping)
		return REAL(pthread_getattr_np)(thread, attributes);
	result = pthread_attr_init(attributes);
	if (result)
		return result;
	pthread_attr_setdetachstate(attributes, fiber->detached ? PTHREAD_CREATE_DETACHED
								: PTHREAD_CREATE_JOINABLE);
	pthread_attr_setguardsize(attributes, fiber->guard);
	return pthread_attr_setstack(attributes, fiber->stack_low,
				     (char *)fiber->stack_high - (char *)fiber->stack_low);
}

PUBLIC int pthread_setname_np(pthread_t thread, const char *name)
{
	struct fiber *fiber = fibers_on ? fiber_find(thread) : NULL;
	size_t length;

	if (!fiber || !fiber->mapping)
		return REAL(pthread_setname_np)(thread, name);
	length = plain_length(name);
	if (length >= sizeof(fiber->name))
		return ERANGE;
	plain_copy(fiber->name, name, length + 1);
	return 0;
}

PUBLIC int pthread_getname_np(pthread_t thread, char *name, size_t size)
{
	struct fiber *fiber = fibers_on ? fiber_find(thread) : NULL;

	if (!fiber || !fiber->mapping)
		return REAL(pthread_getname_np)(thread, name, size);
	if (size <= plain_length(fiber->name))
		return ERANGE;
	plain_copy(name, fiber->name, plain_length(fiber->name) + 1);
	return 0;
}

/* All of them are where the main thread is. */
static pthread_t kernel_thread(pthread_t thread)
{
	return fibers_on && fiber_find(thread) ? (pthread_t)fiber_at(0)->tls : thread;
}

PUBLIC int pthread_getaffinity_np(pthread_t thread, size_t size, cpu_set_t *set)
{
	return REAL(pthread_getaffinity_np)(kernel_thread(thread), size, set);
}

PUBLIC int pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t *set)
{
	if (fibers_on) /* processors mean nothing here */
		return fiber_find(thread) ? 0 : ESRCH;
	return REAL(pthread_setaffinity_np)(thread, size, set);
}

PUBLIC int pthread_getschedparam(pthread_t thread, int *policy, struct sched_param *parameter)
{
	return REAL(pthread_getschedparam)(kernel_thread(thread), policy, parameter);
}

PUBLIC int pthread_setschedparam(pthread_t thread, int policy, const struct sched_param *parameter)
{
	if (fibers_on)
		return fiber_find(thread) ? 0 : ESRCH;
	return REAL(pthread_setschedparam)(thread, policy, parameter);
}

PUBLIC int pthread_setschedprio(pthread_t thread, int priority)
{
	if (fibers_on)
		return fiber_find(thread) ? 0 : ESRCH;
	return REAL(pthread_setschedprio)(thread, priority);
}

PUBLIC int pthread_getcpuclockid(pthread_t thread, clockid_t *clock)
{
	return REAL(pthread_getcpuclockid)(kernel_thread(thread), clock);
}

PUBLIC pid_t gettid(void)
{
	return fibers_on && fiber_current->number ? fiber_thread_id(fiber_current) : REAL(gettid)();
}

PUBLIC int sched_yield(void)
{
	if (!fibers_on || fibers_live() < 2)
		return REAL(sched_yield)();
	fiber_point(POINT_SPIN);
	return 0;
}
