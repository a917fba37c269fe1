/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who runs next. The ready fibers are a ring, the current one among them.
 *
 * Round robin gives way at every synchronisation. The other policies may switch before any access
 * that others can see: at random; by priorities that change at a few random points (PCT: Burckhardt
 * et al., ASPLOS 2010); or as a script says, which is how all schedules of a program are gone
 * through. In an exploration a choice is one more branch of a path instead.
 */
#include "fibers/buffer.h"

#include "runtime/execution.h"
#include "runtime/hooks.h"
#include "symbolic/symbolic.h"

HIDDEN void fiber_swap(void **from, void *to, uintptr_t tls);

enum {
	SPIN_ACCESSES = 64,   /* atomic accesses without a switch: it waits for something */
	SPIN_LOADS = 20000,   /* the same for plain loads of PM, of which there are many */
	SPIN_TIME_NS = 10000, /* what a turn of waiting takes, on the virtual clock */
	RANDOM_SWITCH = 8,    /* one access in so many */
	SPINS_BETWEEN_LOOKS = 64,
	CHANGES = 8,
};

bool fibers_preempt;
static uint32_t ready; /* in the ring */
static uint32_t spins;
static struct fiber *dead; /* detached and done, but its stack was in use until now */

static struct {
	enum schedule_policy policy;
	uint64_t random;
	/* PCT */
	bool reconsider;
	int64_t lowest;
	unsigned changes;
	uint64_t change[CHANGES];
	/* script */
	uint32_t preemptions;
} schedule;

static uint64_t next_random(void)
{
	schedule.random += 0x9e3779b97f4a7c15ull; /* splitmix64 */
	uint64_t z = schedule.random;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static struct schedule_settings *settings(void)
{
	return &runtime_session->executions.schedule;
}

void schedule_start(void)
{
	struct schedule_settings *wanted = settings();

	schedule.policy = wanted->policy;
	if (runtime_recovers && schedule.policy == SCHEDULE_SCRIPT)
		schedule.policy = SCHEDULE_ROUND_ROBIN;
	schedule.random = wanted->seed;
	fibers_preempt = schedule.policy != SCHEDULE_ROUND_ROBIN || wanted->measure;
	runtime_wants_loads |= fibers_preempt;
	buffers_on = runtime_logs && schedule.policy != SCHEDULE_ROUND_ROBIN;
	schedule.changes = wanted->depth ? wanted->depth - 1 : 0;
	if (schedule.changes > CHANGES)
		schedule.changes = CHANGES;
	for (unsigned i = 0; i < schedule.changes; i++)
		schedule.change[i] = 1 + next_random() % (wanted->steps ? wanted->steps : 1);
	ready = 0;
}

/* Choices are the parent's to record: a forked child takes turns. */
void schedule_after_fork(void)
{
	schedule.policy = SCHEDULE_ROUND_ROBIN;
	fibers_preempt = buffers_on = false;
	ready = 1;
}

void schedule_note_created(struct fiber *fiber)
{
	fiber->priority = next_random() >> 2;
	schedule.reconsider = true;
}

/* ---- the ring ---- */

uint32_t fibers_ready(void)
{
	return ready;
}

void fiber_make_ready(struct fiber *fiber)
{
	bool current_is_ready = fiber_current->state == FIBER_READY;
	struct fiber *before = current_is_ready ? fiber_current : fiber_current->next;

	fiber->state = FIBER_READY;
	if (ready) { /* just before the current one, or what comes after it */
		fiber->next = before;
		fiber->before = before->before;
		fiber->before->next = before->before = fiber;
	} else {
		fiber->next = fiber->before = fiber;
		fiber_current->next = fiber;
	}
	ready++;
	schedule.reconsider = true;
}

void fiber_prefer(struct fiber *fiber)
{
	struct fiber *current = fiber_current;

	if (current->state != FIBER_READY || fiber == current || fiber->before == current)
		return;
	fiber->next->before = fiber->before;
	fiber->before->next = fiber->next;
	fiber->next = current->next;
	fiber->before = current;
	fiber->next->before = current->next = fiber;
}

/* Keeps `next`, so that its successor is known. */
static void take_out(struct fiber *fiber)
{
	fiber->next->before = fiber->before;
	fiber->before->next = fiber->next;
	ready--;
}

/* ---- choices ---- */

static struct fiber *skip(struct fiber *fiber, uint64_t count)
{
	while (count--)
		fiber = fiber->next;
	return fiber;
}

/* The first of `ways`, unless the script, or what follows from it, says another one. */
static uint32_t choose_way(uint32_t ways)
{
	struct schedule_settings *all = settings();
	uint32_t at = all->choices, taken = 0;

	if (ways < 2)
		return 0;
	if (runtime_explores || runtime_session->executions.given)
		return symbolic_choose(ways);
	if (at == SCHEDULE_CHOICES) {
		all->choices_lost = true;
		return 0;
	}
	if (at < all->script_length && all->choice[at].taken < ways)
		taken = all->choice[at].taken;
	all->choice[at] = (struct schedule_choice){ taken, ways > 255 ? 255 : ways };
	all->choices++;
	return taken;
}

static struct fiber *choose_by_script(enum fiber_point kind, bool stays)
{
	struct fiber *first = fiber_current;
	uint32_t ways = ready, taken;

	if (stays && kind == POINT_SPIN && ready > 1)
		first = first->next, ways--;
	else if (stays && schedule.preemptions >= settings()->preemptions)
		ways = 1;
	if (!stays)
		first = first->next;
	taken = choose_way(ways);
	if (taken && stays && kind != POINT_SPIN)
		schedule.preemptions++;
	return skip(first, taken);
}

static struct fiber *choose_by_priority(enum fiber_point kind, bool stays)
{
	struct schedule_settings *all = settings();
	struct fiber *best = stays ? fiber_current : fiber_current->next, *fiber = best;

	for (unsigned i = 0; i < schedule.changes; i++)
		if (all->points == schedule.change[i]) {
			fiber_current->priority = -(int64_t)i - 1;
			schedule.reconsider = true;
		}
	if (stays && kind == POINT_SPIN) {
		fiber_current->priority = schedule.lowest = schedule.lowest - 1;
		schedule.reconsider = true;
	}
	if (stays && !schedule.reconsider)
		return fiber_current;
	schedule.reconsider = false;
	for (uint32_t i = 0; i < ready; i++, fiber = fiber->next)
		if (fiber->priority > best->priority)
			best = fiber;
	return best;
}

static struct fiber *choose(enum fiber_point kind, bool stays)
{
	switch (schedule.policy) {
	case SCHEDULE_RANDOM:
		if (stays && kind == POINT_ACCESS && next_random() % RANDOM_SWITCH)
			return fiber_current;
		return skip(fiber_current->next, next_random() % ready);
	case SCHEDULE_PCT:
		return choose_by_priority(kind, stays);
	case SCHEDULE_SCRIPT:
		return choose_by_script(kind, stays);
	default:
		return stays && kind == POINT_ACCESS ? fiber_current : fiber_current->next;
	}
}

/* How many of the operations that wait in the buffer shall wait on? */
static unsigned choose_kept(unsigned waiting)
{
	switch (schedule.policy) {
	case SCHEDULE_RANDOM:
	case SCHEDULE_PCT:
		return next_random() % (waiting + 1);
	case SCHEDULE_SCRIPT: /* those of an exploration have no buffers */
		return runtime_session->executions.given ? 0 : choose_way(waiting + 1);
	default:
		return 0;
	}
}

/* ---- switching ---- */

static void switch_to(struct fiber *next)
{
	struct fiber *self = fiber_current;

	if (next == self)
		return;
	self->accesses = self->loads = 0;
	if (runtime_thread.buffered)
		buffer_leave(choose_kept(buffer_waiting()));
	signals_switch(next);
	fiber_current = next;
	fiber_swap(&self->stack_pointer, next->stack_pointer, next->tls);
	if (runtime_thread.buffered)
		buffer_enter();
	if (__builtin_expect(dead != NULL, 0)) {
		fiber_free(dead);
		dead = NULL;
	}
	if (__builtin_expect(fiber_current->signals != 0, 0))
		fiber_raise_signals();
	if (__builtin_expect(fiber_current->cancelled, 0) && fiber_current->cancel_asynchronous)
		fiber_test_cancel();
}

void fiber_point(enum fiber_point kind)
{
	struct fiber *self = fiber_current;

	/* A signal handler inside of a hook, or while all wait; a locked stream. */
	if (runtime_thread.busy || self->holds || fibers_idling)
		return;
	if (kind != POINT_ACCESS && runtime_thread.buffered)
		buffer_drain();
	/* Asking again and again, atomically or under a lock, is waiting. */
	if (kind != POINT_SPIN && ++self->accesses >= SPIN_ACCESSES)
		kind = POINT_SPIN;
	if (kind == POINT_SPIN) {
		self->accesses = 0;
		clock_pass(SPIN_TIME_NS);
		if (++spins % SPINS_BETWEEN_LOOKS == 0)
			fibers_look_at_descriptors();
	}
	if (fibers_next_deadline != FIBER_NEVER && fibers_next_deadline <= clock_elapsed())
		fibers_expire();
	if (__builtin_expect(self->cancelled, 0) && self->cancel_asynchronous)
		fiber_test_cancel();
	if (ready < 2)
		return;
	settings()->points++;
	switch_to(choose(kind, true));
}

void fiber_loaded(void)
{
	if (++fiber_current->loads < SPIN_LOADS)
		return;
	fiber_current->loads = 0;
	fiber_point(POINT_SPIN);
}

void fiber_leave(void)
{
	struct fiber *self = fiber_current;

	if (runtime_thread.buffered)
		buffer_drain();
	take_out(self);
	if (self->state == FIBER_DONE && self->detached)
		dead = self;
	if (!ready)
		fibers_idle();
	if (self->state == FIBER_READY && ready == 1)
		return; /* what it waited for has happened meanwhile */
	switch_to(choose(POINT_SYNC, self->state == FIBER_READY));
}
