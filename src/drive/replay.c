/* SPDX-License-Identifier: BSD-3-Clause */
#include "drive/replay.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "perdure/event.h"
#include "session/session.h"

enum { THREADS = 1 << 16, RANGES = 1 << 20, POOL = 1 << 26 };

struct replay {
	struct lines lines;
	struct lines_thread thread[THREADS];
	struct transactions *transactions[THREADS];
};

static void *reserve(uint64_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

struct replay *replay_create(enum lines_model model)
{
	struct replay *replay = reserve(sizeof(*replay));
	struct lines *lines;

	if (!replay)
		return NULL;
	lines = &replay->lines;
	*lines = (struct lines){
		.model = model,
		.base = SESSION_WINDOW,
		.count = SESSION_WINDOW_SIZE / LINES_LINE_SIZE,
		.stores.capacity = POOL,
		.flushes.capacity = POOL,
	};
	lines->line = reserve(lines->count * sizeof(*lines->line));
	lines->store = reserve(POOL * sizeof(*lines->store));
	lines->flush = reserve(POOL * sizeof(*lines->flush));
	lines->touched = reserve(SESSION_WINDOW_SIZE >> LINES_BLOCK_SHIFT);
	return lines->line && lines->store && lines->flush && lines->touched ? replay : NULL;
}

static struct lines_thread *thread_of(struct replay *replay, uint32_t id)
{
	struct lines_thread *thread = &replay->thread[id % THREADS];

	thread->id = id;
	thread->owner = 1; /* there is only one at a time here */
	return thread;
}

static struct transactions *transactions_of(struct replay *replay, uint32_t id)
{
	struct transactions **tx = &replay->transactions[id % THREADS];

	if (*tx)
		return *tx;
	*tx = reserve(sizeof(**tx) + 2ul * RANGES * sizeof(struct range));
	if (!*tx)
		abort();
	transactions_init(*tx, (struct range *)(*tx + 1), RANGES);
	return *tx;
}

static void store(struct replay *replay, struct lines_thread *thread,
		  const struct perdure_event *event)
{
	uint64_t address = event->address, end = address + event->size;

	thread->event++;
	while (address < end) {
		uint64_t next = (address | (LINES_LINE_SIZE - 1)) + 1;
		uint64_t stop = next < end ? next : end;

		if (lines_begin(&replay->lines, thread, address))
			lines_end_store(&replay->lines, thread, address,
					lines_bytes(address, stop - address), event->stack,
					event->detail & PERDURE_NONTEMPORAL);
		address = stop;
	}
}

static void memory_event(struct replay *replay, struct lines_thread *thread,
			 const struct perdure_event *event)
{
	struct lines *lines = &replay->lines;

	switch (event->kind) {
	case PERDURE_EVENT_STORE:
		store(replay, thread, event);
		break;
	case PERDURE_EVENT_FLUSH:
		lines_flush(lines, thread, event->address & ~(uint64_t)(LINES_LINE_SIZE - 1),
			    event->stack,
			    event->detail == PERDURE_CLFLUSH ? LINES_ORDERED : LINES_FLUSH, NULL);
		break;
	case PERDURE_EVENT_FENCE:
		if (event->detail == PERDURE_SFENCE || event->detail == PERDURE_MFENCE ||
		    event->detail == PERDURE_RMW_FENCE)
			lines_fence(lines, thread, event->stack, false);
		break;
	case PERDURE_EVENT_PERSIST:
		lines_persist(lines, thread, event->address, event->size, event->stack);
		break;
	case PERDURE_EVENT_VOLATILE:
		lines_exclude(lines, thread, event->address, event->size, true);
		break;
	case PERDURE_EVENT_UNMAP:
		lines_forget(lines, thread, event->address, event->size);
		break;
	default:
		break;
	}
}

static uint32_t model_flags(uint32_t detail)
{
	return (detail & PERDURE_TX_NO_FLUSH ? TRANSACTIONS_NO_FLUSH : 0) |
	       (detail & PERDURE_TX_NO_SNAPSHOT ? TRANSACTIONS_NO_SNAPSHOT : 0) |
	       (detail & PERDURE_TX_ATOMIC ? TRANSACTIONS_ATOMIC : 0);
}

static void transaction_event(struct replay *replay, struct lines_thread *thread,
			      const struct perdure_event *event)
{
	struct transactions *tx = transactions_of(replay, event->thread);
	uint64_t end = event->address + event->size, again;

	switch (event->kind) {
	case PERDURE_EVENT_TX_BEGIN:
		transactions_begin(tx, event->stack, event->address, end);
		break;
	case PERDURE_EVENT_TX_ADD:
		transactions_add(tx, event->address, event->size, event->stack,
				 model_flags(event->detail), &again);
		break;
	case PERDURE_EVENT_TX_COMMIT:
	case PERDURE_EVENT_TX_ABORT:
		transactions_finish(tx, &replay->lines, thread,
				    event->kind == PERDURE_EVENT_TX_COMMIT, event->detail,
				    event->stack);
		break;
	case PERDURE_EVENT_TX_END:
		transactions_end(tx);
		break;
	case PERDURE_EVENT_ALLOC:
		if (!(event->detail & PERDURE_TX_RESERVED))
			transactions_alloc(tx, event->address, event->size, event->stack,
					   model_flags(event->detail));
		break;
	case PERDURE_EVENT_FREE:
		if (!transactions_free(tx, event->address, event->size, event->stack))
			lines_forget(&replay->lines, thread, event->address, event->size);
		break;
	default: /* PERDURE_EVENT_PUBLISH */
		break;
	}
}

void replay_event(struct replay *replay, const struct perdure_event *event)
{
	struct lines_thread *thread = thread_of(replay, event->thread);

	switch (event->kind) {
	case PERDURE_EVENT_TX_BEGIN:
	case PERDURE_EVENT_TX_ADD:
	case PERDURE_EVENT_TX_COMMIT:
	case PERDURE_EVENT_TX_ABORT:
	case PERDURE_EVENT_TX_END:
	case PERDURE_EVENT_ALLOC:
	case PERDURE_EVENT_FREE:
	case PERDURE_EVENT_PUBLISH:
		transaction_event(replay, thread, event);
		break;
	default:
		memory_event(replay, thread, event);
	}
}

enum lines_state replay_state(const struct replay *replay, uint64_t address, uint64_t size)
{
	uint64_t end = SESSION_WINDOW + SESSION_WINDOW_SIZE;

	if (address < SESSION_WINDOW || address >= end || size > end - address)
		return LINES_PERSISTENT;
	return lines_query(&replay->lines, address, size);
}

const struct transactions *replay_transactions(const struct replay *replay, uint32_t thread)
{
	return replay->transactions[thread % THREADS];
}
