/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a path has done to PM, for plug-ins and traces: kept until its end, and then told as a
 * whole, so that those who listen hear one path after the other. They may ask what a store could
 * have stored: the path is there until they have heard all of it.
 */
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "model/spin.h"
#include "runtime/hooks.h"
#include "symbolic/symbolic.h"

enum { EVENTS = 1 << 22 };

static struct perdure_event *events;
static uint32_t count, symbols; /* symbols: stores that could be something else */

void telling_note(const struct perdure_event *event)
{
	if (!events) {
		long got = syscall(SYS_mmap, NULL, (size_t)EVENTS * sizeof(*events),
				   PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0L);

		events = got == -1 ? NULL : (void *)got;
	}
	if (events && count < EVENTS) {
		events[count] = *event;
		if (event->kind == PERDURE_EVENT_STORE && event->size <= 8 && symbolic_on)
			events[count].symbol =
				memory_load((const void *)event->address, (unsigned)event->size);
		symbols += events[count++].symbol != 0;
	} else
		session_limit(
			runtime_session, thread_owner(),
			"a path made too many events for plug-ins: they did not hear the rest");
}

static void mark(enum stream_mark kind, uint32_t input, bool confirms)
{
	struct perdure_event event = { .kind = kind, .detail = confirms, .address = input };

	tell_now(&event);
}

/* ---- questions ---- */

static bool may(struct explore_query *query)
{
	static const uint8_t ops[] = {
		[PERDURE_EQUAL] = SYMBOLIC_EQ,
		[PERDURE_DIFFERENT] = SYMBOLIC_NE,
		[PERDURE_BELOW] = SYMBOLIC_ULT,
		[PERDURE_ABOVE] = SYMBOLIC_ULT, /* the other way round */
	};
	static struct path_change change;
	unsigned width = expression_at(query->symbol)->width;
	uint32_t number = expression_constant(width, query->number), holds;
	bool turned = query->relation == PERDURE_ABOVE;

	holds = expression_make(ops[query->relation], width, turned ? number : query->symbol,
				turned ? query->symbol : number);
	if (query->negated)
		holds = expression_not(holds);
	query->input = 0;
	if (expression_value(holds))
		return true;
	switch (path_may(holds, &change)) {
	case PATH_YES:
		query->input = states_keep_witness(&change);
		return true;
	case PATH_NO:
		return false;
	default:
		return true;
	}
}

static void answer(struct explore_query *query)
{
	if (__atomic_load_n(&query->asked, __ATOMIC_ACQUIRE) == query->answered)
		return;
	query->answer = may(query);
	__atomic_store_n(&query->answered, query->asked, __ATOMIC_RELEASE);
}

static void pause_a_moment(void)
{
	syscall(SYS_nanosleep, &(struct timespec){ .tv_nsec = 50000 }, NULL);
}

/* One who asks does not read meanwhile. */
static void answer_while_full(struct explore_query *query)
{
	const struct stream *stream = &runtime_session->stream;

	while (symbols && stream->on && stream->written - stream->read >= STREAM_SLOTS / 2) {
		answer(query);
		pause_a_moment();
	}
}

static bool is_there(pid_t pid)
{
	return syscall(SYS_kill, pid, 0) == 0;
}

static void answer_to_the_end(struct explore_query *query, uint32_t heard)
{
	const struct stream *stream = &runtime_session->stream;

	while (symbols && stream->on && query->heard == heard && is_there(stream->reader)) {
		answer(query);
		pause_a_moment();
	}
}

/* ---- the end ---- */

void telling_end(uint32_t input, bool confirms)
{
	struct explore *explore = symbolic_shared();
	uint32_t heard;
	bool locked;

	if (!runtime_session->stream.on)
		return;
	locked = spin_lock(&explore->telling, thread_owner());
	heard = explore->query.heard;
	mark(STREAM_PATH_BEGINS, input, confirms);
	for (uint32_t i = 0; i < count; i++) {
		answer_while_full(&explore->query);
		tell_now(&events[i]);
	}
	mark(STREAM_PATH_ENDS, input, confirms);
	answer_to_the_end(&explore->query, heard);
	if (locked)
		spin_unlock(&explore->telling);
}
