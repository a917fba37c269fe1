/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fibers that wait: for a wake-up, for a time, for a descriptor, or for another process. When all
 * of them wait, virtual time jumps to the first deadline; if nothing can ever end the wait, that is
 * a deadlock.
 */
#include "fibers/fibers.h"

#include <errno.h>
#include <sys/time.h>
#include <signal.h>
#include <unistd.h>

#include "runtime/execution.h"
#include "symbolic/network.h"

enum { POLLED = 256, OUTSIDE_MS = 1, MILLISECOND = 1000000 };

bool fibers_idling;
uint64_t fibers_next_deadline = FIBER_NEVER;
static struct fiber *first, *last; /* those who wait, longest first */
static bool deadlocked;
static uint32_t joined; /* so many of those that were reported wait for the end of another */

static void enqueue(struct fiber *fiber)
{
	fiber->state = FIBER_WAITING;
	fiber->later = fiber->first_in_line ? first : NULL;
	fiber->earlier = fiber->first_in_line ? NULL : last;
	*(fiber->earlier ? &fiber->earlier->later : &first) = fiber;
	*(fiber->later ? &fiber->later->earlier : &last) = fiber;
	if (fiber->deadline < fibers_next_deadline)
		fibers_next_deadline = fiber->deadline;
}

static void dequeue(struct fiber *fiber)
{
	*(fiber->earlier ? &fiber->earlier->later : &first) = fiber->later;
	*(fiber->later ? &fiber->later->earlier : &last) = fiber->earlier;
	fiber_make_ready(fiber);
}

void waits_forget(void)
{
	first = last = NULL;
	fibers_next_deadline = FIBER_NEVER;
}

/* ---- the end of waiting ---- */

void fiber_wake_one(struct fiber *fiber)
{
	if (fiber->state == FIBER_WAITING)
		dequeue(fiber);
}

unsigned fiber_wake(const void *object, unsigned count)
{
	unsigned woken = 0;
	struct fiber *later;

	for (struct fiber *fiber = first; fiber && woken < count; fiber = later) {
		later = fiber->later;
		if (fiber->object != object)
			continue;
		dequeue(fiber);
		if (!woken++)
			fiber_prefer(fiber);
	}
	return woken;
}

void fibers_expire(void)
{
	uint64_t now = clock_elapsed();
	struct fiber *later;

	fibers_next_deadline = FIBER_NEVER;
	for (struct fiber *fiber = first; fiber; fiber = later) {
		later = fiber->later;
		if (fiber->deadline <= now) {
			fiber->timed_out = true;
			dequeue(fiber);
		} else if (fiber->deadline < fibers_next_deadline) {
			fibers_next_deadline = fiber->deadline;
		}
	}
}

/* ---- deadlock ---- */

static void end_by_deadlock(void)
{
	struct sigaction fatal = { .sa_handler = SIG_DFL };
	sigset_t all;

	if (!runtime_recovers)
		message("deadlock: every thread of the program waits for another one");
	sigemptyset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	sigaction(SIGABRT, &fatal, NULL);
	REAL(kill)(getpid(), SIGABRT);
	_exit(127);
}

/*
 * Every fiber says where it waits, one after the other; the last one ends the process. One that
 * waits for the end of another is not what the deadlock is about, and comes later.
 */
static void report_deadlock(const struct frame *frame, bool joins)
{
	struct execution *execution = runtime_execution;
	uint32_t at = execution->deadlocked, *list = execution->deadlock;

	if (at < EXECUTION_DEADLOCKED && thread_enter()) {
		list[at] = stack_capture(frame);
		if (!joins && joined) { /* the first one that joins makes room */
			uint32_t stack = list[at];

			list[at] = list[at - joined];
			list[at - joined] = stack;
		}
		joined += joins;
		execution->deadlocked++;
		thread_leave();
	}
	fiber_current->state = FIBER_DONE;
	fiber_leave();
}

static void deadlock(void)
{
	if (deadlocked)
		end_by_deadlock();
	deadlocked = true;
	while (first)
		dequeue(first);
}

/* ---- nobody is ready ---- */

/* Timers and other processes may send signals, and processes may wake what they share. */
static bool somebody_outside(void)
{
	struct itimerval timer;

	if (runtime_execution->inputs & (INPUT_PROCESSES | INPUT_SOCKETS | INPUT_TIMERS))
		return true;
	return getitimer(ITIMER_REAL, &timer) == 0 &&
	       (timer.it_value.tv_sec || timer.it_value.tv_usec);
}

struct wishes {
	nfds_t count;
	struct pollfd poll[POLLED];
	bool outside, pauses;
};

static void collect(struct wishes *wishes)
{
	wishes->count = 0;
	wishes->outside = wishes->pauses = false;
	for (struct fiber *fiber = first; fiber; fiber = fiber->later) {
		wishes->outside |= fiber->outside;
		wishes->pauses |= fiber->pauses;
		for (nfds_t i = 0; i < fiber->polls && wishes->count < POLLED; i++)
			wishes->poll[wishes->count++] = fiber->poll[i];
	}
}

/* In the order of collect. */
static void wake_wishes(const struct wishes *wishes)
{
	struct fiber *later;
	nfds_t at = 0;

	for (struct fiber *fiber = first; fiber; fiber = later) {
		bool ready = fiber->outside;

		later = fiber->later;
		for (nfds_t i = 0; i < fiber->polls && at < wishes->count; i++)
			ready |= wishes->poll[at++].revents != 0;
		if (ready)
			dequeue(fiber);
	}
}

void fibers_look_at_descriptors(void)
{
	struct wishes wishes;

	if (!first)
		return;
	collect(&wishes);
	if (wishes.outside || (wishes.count && KERNEL(poll)(wishes.poll, wishes.count, 0) > 0))
		wake_wishes(&wishes);
}

/* How long a real wait may take, in milliseconds; -1: without end. */
static int patience(const struct wishes *wishes)
{
	uint64_t now = clock_elapsed(), left;

	if (wishes->outside)
		return OUTSIDE_MS;
	if (fibers_next_deadline == FIBER_NEVER)
		return -1;
	if (clock_is_virtual() || fibers_next_deadline <= now)
		return 0;
	left = (fibers_next_deadline - now + MILLISECOND - 1) / MILLISECOND;
	return left > 1000000 ? 1000000 : (int)left;
}

/* The handler has run; natively it would have been in some thread, the main one if it could. */
static void interrupt_somebody(void)
{
	struct fiber *later, *chosen = NULL;

	for (struct fiber *fiber = first; fiber; fiber = later) {
		later = fiber->later;
		if (fiber->pauses)
			dequeue(fiber);
		else if (fiber->interruptible && (!chosen || !fiber->number))
			chosen = fiber;
	}
	if (chosen)
		fiber_interrupt(chosen, true); /* how it was installed is not known here */
}

void fibers_idle(void)
{
	struct wishes wishes;
	int heard;

	while (!fibers_ready()) {
		collect(&wishes);
		wishes.pauses |= somebody_outside();
		if (!wishes.count && !wishes.outside && !wishes.pauses &&
		    fibers_next_deadline == FIBER_NEVER) {
			deadlock();
			return;
		}
		heard = 0;
		fibers_idling = true;
		signals_idle();
		if (wishes.count || wishes.outside || wishes.pauses || !clock_is_virtual())
			heard = KERNEL(poll)(wishes.poll, wishes.count, patience(&wishes));
		fibers_idling = false;
		if (heard < 0 && errno == EINTR)
			interrupt_somebody();
		if (heard > 0 || wishes.outside)
			wake_wishes(&wishes);
		else if (fibers_next_deadline != FIBER_NEVER && clock_is_virtual() &&
			 fibers_next_deadline > clock_elapsed()) {
			if (network_on)
				network_pass_time(fibers_next_deadline);
			else
				clock_pass(fibers_next_deadline - clock_elapsed());
		}
		if (wishes.outside)
			clock_pass(OUTSIDE_MS * MILLISECOND);
		fibers_expire();
	}
}

/* ---- waiting ---- */

static bool wait_for(struct fiber *self, const struct frame *frame)
{
	bool joins = fiber_is(self->object);

	self->timed_out = false;
	if (self->deadline <= clock_elapsed()) {
		fiber_point(POINT_SPIN);
		return false;
	}
	enqueue(self);
	fiber_leave();
	self->object = NULL;
	self->polls = 0;
	self->outside = self->pauses = false;
	if (deadlocked)
		report_deadlock(frame, joins);
	return !self->timed_out;
}

bool fiber_wait(const void *object, uint64_t deadline)
{
	struct fiber *self = fiber_current;

	self->object = object;
	self->deadline = deadline;
	return wait_for(self, FRAME);
}

void fiber_may_be_interrupted(bool restarts)
{
	fiber_current->interruptible = true;
	fiber_current->restarts = restarts;
	fiber_current->interrupted = false;
}

bool fiber_was_interrupted(void)
{
	struct fiber *self = fiber_current;
	bool interrupted = self->interrupted;

	self->interruptible = self->interrupted = false;
	if (interrupted)
		errno = EINTR;
	return interrupted;
}

void fiber_interrupt(struct fiber *fiber, bool restarts)
{
	fiber->interrupted = fiber->interruptible && !(restarts && fiber->restarts);
	fiber_wake_one(fiber);
}

void fiber_pause(void)
{
	struct fiber *self = fiber_current;

	self->pauses = true;
	self->object = NULL;
	self->deadline = FIBER_NEVER;
	wait_for(self, FRAME);
}

bool fiber_wait_outside(const void *object, uint64_t deadline)
{
	struct fiber *self = fiber_current;

	self->outside = true;
	self->object = object;
	self->deadline = deadline;
	return wait_for(self, FRAME);
}

bool fiber_wait_descriptors(struct pollfd *list, nfds_t polls, uint64_t deadline)
{
	struct fiber *self = fiber_current;

	self->object = NULL;
	self->poll = list;
	self->polls = polls;
	self->deadline = deadline;
	return wait_for(self, FRAME);
}

bool fiber_wait_descriptor(int fd, short events, uint64_t deadline)
{
	struct pollfd own = { .fd = fd, .events = events };

	if (fibers_live() < 2 || KERNEL(poll)(&own, 1, 0) != 0)
		return true;
	return fiber_wait_descriptors(&own, 1, deadline);
}
