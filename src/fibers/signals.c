/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Signals. All fibers are one thread for the kernel, so its mask changes with the fiber that runs.
 * A signal for the process arrives as soon as a fiber runs that does not block it, or when all
 * wait.
 */
#include "binary/binary.h"
#include "fibers/fibers.h"
#include "races/races.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/execution.h"

static uint64_t kernel_mask; /* what it is now */

static void change_mask(uint64_t mask)
{
	if (mask == kernel_mask)
		return;
	REAL(syscall)(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof(mask));
	kernel_mask = mask;
}

static void note_mask(void)
{
	REAL(syscall)(SYS_rt_sigprocmask, SIG_SETMASK, NULL, &kernel_mask, sizeof(kernel_mask));
	fiber_current->mask = kernel_mask;
}

void signals_start(void)
{
	note_mask();
}

void signals_switch(const struct fiber *next)
{
	if (__builtin_expect(next->mask != kernel_mask, 0))
		change_mask(next->mask);
}

void signals_idle(void)
{
	uint64_t mask = UINT64_MAX;

	for (uint32_t i = 0; i < fibers_count(); i++)
		if (fiber_at(i)->state == FIBER_WAITING)
			mask &= fiber_at(i)->mask;
	change_mask(mask);
}

/* ---- masks ---- */

PUBLIC int pthread_sigmask(int how, const sigset_t *restrict set, sigset_t *restrict old)
{
	int result = binary_set_mask(how, set, old);

	if (fibers_on && set)
		note_mask();
	return result;
}

PUBLIC int sigprocmask(int how, const sigset_t *restrict set, sigset_t *restrict old)
{
	int error = pthread_sigmask(how, set, old);

	if (error)
		errno = error;
	return error ? -1 : 0;
}

/* ---- one thread to another ---- */

void fiber_raise_signals(void)
{
	struct fiber *self = fiber_current;

	while (self->signals) {
		int signal = __builtin_ctzll(self->signals);
		bool interrupted = self->interrupted; /* the handler may wait itself */

		self->signals &= self->signals - 1;
		raise(signal);
		self->interrupted = interrupted;
	}
}

static bool restarts(int signal)
{
	struct sigaction action;

	return sigaction(signal, NULL, &action) == 0 &&
	       (action.sa_flags & SA_RESTART || action.sa_handler == SIG_IGN);
}

PUBLIC int pthread_kill(pthread_t thread, int signal)
{
	struct fiber *fiber;

	if (runtime_races)
		races_handed(-1, true);
	if (!fibers_on)
		return REAL(pthread_kill)(thread, signal);
	fiber = fiber_find(thread);
	if (!fiber || fiber->state == FIBER_DONE)
		return ESRCH;
	if (signal < 0 || signal > 63)
		return EINVAL;
	if (!signal)
		return 0;
	if (fiber == fiber_current)
		return raise(signal) ? errno : 0;
	fiber->signals |= 1ull << signal;
	fiber_interrupt(fiber, restarts(signal));
	fiber_point(POINT_SYNC);
	return 0;
}

/* ---- waiting for signals ---- */

/* Blocked signals wait in the kernel, from where they are fetched now and then. */
static int fetch(const sigset_t *set, siginfo_t *info, uint64_t deadline)
{
	static const struct timespec now;
	int signal;

	fiber_test_cancel();
	fiber_may_be_interrupted(false);
	while ((signal = REAL(sigtimedwait)(set, info, &now)) < 0 && errno == EAGAIN) {
		if (!fiber_wait_outside(NULL, deadline) || fiber_current->interrupted)
			break;
		fiber_test_cancel();
	}
	return fiber_was_interrupted() ? -1 : signal;
}

PUBLIC int sigwait(const sigset_t *restrict set, int *restrict signal)
{
	int got;

	if (!fibers_on || fibers_live() < 2) {
		got = REAL(sigwait)(set, signal);
		if (runtime_races)
			races_handed(-1, false);
		return got;
	}
	got = fetch(set, NULL, FIBER_NEVER);
	if (got < 0)
		return errno;
	*signal = got;
	return 0;
}

PUBLIC int sigwaitinfo(const sigset_t *restrict set, siginfo_t *restrict info)
{
	return fibers_on && fibers_live() > 1 ? fetch(set, info, FIBER_NEVER)
					      : REAL(sigwaitinfo)(set, info);
}

PUBLIC int sigtimedwait(const sigset_t *restrict set, siginfo_t *restrict info,
			const struct timespec *restrict time)
{
	return fibers_on && fibers_live() > 1
		       ? fetch(set, info, time ? clock_deadline_in(time) : FIBER_NEVER)
		       : REAL(sigtimedwait)(set, info, time);
}

PUBLIC int sigsuspend(const sigset_t *mask)
{
	sigset_t before;
	int result;

	if (!fibers_on || fibers_live() < 2)
		return REAL(sigsuspend)(mask);
	pthread_sigmask(SIG_SETMASK, mask, &before);
	result = pause();
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = EINTR;
	return result;
}

/* A signal that comes while another fiber runs is not noticed: only its handler runs. */
PUBLIC int pause(void)
{
	if (!fibers_on || fibers_live() < 2)
		return REAL(pause)();
	fiber_test_cancel();
	fiber_pause();
	fiber_test_cancel();
	errno = EINTR;
	return -1;
}
