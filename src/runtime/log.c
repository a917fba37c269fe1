/* SPDX-License-Identifier: BSD-3-Clause */
/* The log of the run before the crash: everything that decides what a crash can leave. */
#include <string.h>

#include "checkers/checkers.h"
#include "fibers/fibers.h"
#include "runtime/execution.h"

/* A recovery has a log of its own, if it may crash, too. */
static struct event_log *own_log(void)
{
	return runtime_logs ? &runtime_session->executions.log : &runtime_execution->log;
}

static void append(enum history_kind kind, uint32_t flags, uint32_t thread, uint64_t address,
		   uint64_t size, uint32_t stack, const void *bytes, uint32_t place)
{
	struct event_log *log = own_log();
	uint64_t data = bytes ? __atomic_fetch_add(&log->bytes, size, __ATOMIC_RELAXED) : 0;
	uint32_t index = __atomic_fetch_add(&log->events, 1, __ATOMIC_RELAXED);
	struct history_event *event = &log->event[index];

	if (index >= log->events_max || data + size > log->bytes_max) {
		__atomic_fetch_sub(&log->events, 1, __ATOMIC_RELAXED);
		log->full = 1;
		return;
	}
	if (bytes)
		plain_copy(log->data + data, bytes, size);
	if (log->reads)
		log->reads[index] = runtime_execution->reads;
	*event = (struct history_event){
		.kind = kind,
		.flags = flags,
		.thread = thread,
		.stack = stack,
		.address = address,
		.size = size,
		.data = data,
		.place = place,
	};
}

void log_event(enum history_kind kind, uint32_t flags, uint32_t thread, uint64_t address,
	       uint64_t size, uint32_t stack, const void *bytes)
{
	append(kind, flags, thread, address, size, stack, bytes, 0);
}

static uint32_t store_flags(uint32_t detail, uint64_t address, uint64_t size)
{
	/* Assembly and streaming stores are one instruction, like volatile ones. */
	bool single = detail & (PERDURE_ATOMIC | PERDURE_RMW | PERDURE_VOLATILE | PERDURE_ASM |
				PERDURE_NONTEMPORAL) &&
		      size <= 8 && address % 8 + size <= 8 && !(detail & PERDURE_BULK);
	uint32_t flags = 0;

	if (single && (detail & (PERDURE_ATOMIC | PERDURE_RMW) ||
		       !runtime_session->executions.volatile_is_plain))
		flags |= HISTORY_ATOMIC;
	if (flags & HISTORY_ATOMIC && detail & PERDURE_ASM &&
	    !(detail & (PERDURE_ATOMIC | PERDURE_RMW | PERDURE_NONTEMPORAL)))
		flags |= HISTORY_GUESSED;
	if (detail & PERDURE_NONTEMPORAL)
		flags |= HISTORY_NONTEMPORAL;
	else if (runtime_session->lines.model == LINES_EADR)
		flags |= HISTORY_FOREIGN; /* what reached the cache is persistent */
	if (flags & HISTORY_ATOMIC && detail & PERDURE_ATOMIC && !causality_releases(detail) &&
	    !runtime_thread.fenced)
		flags |= HISTORY_RELAXED;
	if (checkers_are_muted())
		flags |= HISTORY_UNJUDGED;
	if (detail & PERDURE_RMW && size == 16)
		flags |= HISTORY_SINGLE;
	return flags;
}

/*
 * With persistent caches a large store is as many steps as it has pieces of 8 bytes; a very large
 * one is a few of them.
 */
static void log_store(uint32_t flags, uint32_t thread, uint64_t address, uint64_t size,
		      uint32_t stack, uint32_t place)
{
	enum { STEPS = 64 };
	uint64_t end = address + size, step = 8;

	bool whole = !(flags & HISTORY_FOREIGN) || flags & HISTORY_SINGLE;

	if (size > STEPS * step)
		step = (size / STEPS + 7) & ~7ull;
	while (address < end) {
		uint64_t next = address / 8 * 8 + step;

		if (whole || next > end)
			next = end;
		append(HISTORY_STORE, flags, thread, address, next - address, stack,
		       (const void *)address, place);
		address = next;
	}
}

/* What the thread has learnt since its last event. */
static void log_news(uint32_t thread)
{
	uint32_t count;
	const uint32_t *known = causality_news(thread, &count);

	if (known)
		log_event(HISTORY_CLOCK, 0, thread, 0, count * sizeof(*known), 0, known);
}

void log_told(const struct perdure_event *event)
{
	uint64_t address = event->address, size = event->size;
	uint32_t thread = event->thread, stack = event->stack;

	if (causality_on)
		log_news(thread);
	switch (event->kind) {
	case PERDURE_EVENT_STORE:
		foreign_stored(address, size);
		log_store(store_flags(event->detail, address, size), thread, address, size, stack,
			  event->place);
		if (causality_on)
			causality_stored(thread, (const void *)address, event->detail);
		break;
	case PERDURE_EVENT_FLUSH:
		log_event(event->detail == PERDURE_CLFLUSH ? HISTORY_ORDERED : HISTORY_FLUSH, 0,
			  thread, address, 0, stack, NULL);
		break;
	case PERDURE_EVENT_FENCE:
		if (event->detail == PERDURE_SFENCE || event->detail == PERDURE_MFENCE ||
		    event->detail == PERDURE_RMW_FENCE)
			log_event(HISTORY_FENCE, 0, thread, 0, 0, stack, NULL);
		break;
	case PERDURE_EVENT_PERSIST:
		log_event(HISTORY_PERSIST, 0, thread, address, size, stack, NULL);
		break;
	case PERDURE_EVENT_TX_ADD:
		log_event(HISTORY_PROTECT, 0, thread, address, size, stack, NULL);
		break;
	default:
		break;
	}
}

/* In a recovery, where nobody else listens. */
void log_recovery(enum history_kind kind, uint32_t detail, const void *p, uint64_t size,
		  const struct frame *frame)
{
	struct session_thread *thread = thread_enter();
	uint64_t address = (uintptr_t)p;
	bool stores = kind == HISTORY_STORE;

	if (!thread)
		return;
	if (stores)
		log_store(store_flags(detail, address, size), thread->lines.id, address, size,
			  stack_capture(frame), 0);
	else
		log_event(kind, 0, thread->lines.id, address, size, stack_capture(frame), NULL);
	thread_leave();
}

void log_alloc(const void *p, uint64_t size, uint32_t since, const struct frame *frame)
{
	struct event_log *log = &runtime_session->executions.log;
	struct session_thread *thread = size ? thread_enter() : NULL;
	uint32_t index;

	if (!thread)
		return;
	index = __atomic_fetch_add(&log->events, 1, __ATOMIC_RELAXED);
	if (index < log->events_max)
		log->event[index] = (struct history_event){
			.kind = HISTORY_ALLOC,
			.thread = thread->lines.id,
			.stack = stack_capture(frame),
			.address = (uintptr_t)p,
			.size = size,
			.data = since,
		};
	thread_leave();
}

/* A prebuilt library is trusted: what one of its functions does to files is one step. */
static uint32_t flags_inside(uint32_t flags)
{
	struct thread *thread = &runtime_thread;
	bool inside = thread->calls && thread->call[thread->calls - 1].entry;

	if (!inside)
		return flags;
	flags |= thread->changed_files ? HISTORY_JOINED : 0;
	thread->changed_files = true;
	return flags;
}

void log_world(const struct world_change *change, const void *bytes, uint32_t flags)
{
	struct event_log *log = &runtime_session->executions.log;
	struct session_thread *thread = thread_enter();
	uint32_t stack = thread ? stack_capture(FRAME) : 0;
	uint64_t size = sizeof(*change) + (bytes ? change->size : 0);
	/* Behind bytes of any number: aligned, with room for that. */
	uint64_t data = (__atomic_fetch_add(&log->bytes, size + 7, __ATOMIC_RELAXED) + 7) & ~7ull;
	uint32_t index = __atomic_fetch_add(&log->events, 1, __ATOMIC_RELAXED);

	if (index >= log->events_max || data + size > log->bytes_max) {
		log->full = 1;
		if (thread)
			thread_leave();
		return;
	}
	plain_copy(log->data + data, change, sizeof(*change));
	if (bytes)
		plain_copy(log->data + data + sizeof(*change), bytes, change->size);
	log->event[index] = (struct history_event){
		.kind = HISTORY_WORLD,
		.flags = flags_inside(flags),
		.stack = stack,
		.size = size,
		.data = data,
	};
	if (thread)
		thread_leave();
}
