/* SPDX-License-Identifier: BSD-3-Clause */
/* Transactions and allocations, as library models tell them, and stores in their light. */
#include "model/transactions.h"

#include <string.h>

#include "checkers/checkers.h"
#include "runtime/execution.h"
#include "runtime/hooks.h"
#include "runtime/library.h"

/* ---- the thread's state ---- */

static struct transactions *own_transactions(void)
{
	struct thread *thread = &runtime_thread;

	if (thread->transactions)
		return thread->transactions;
	thread->transactions =
		session_take_transactions(runtime_session, runtime_image, &thread->shared->lines);
	if (!thread->transactions)
		session_limit(runtime_session, thread_owner(),
			      "too many threads with transactions: some were not followed");
	return thread->transactions;
}

void transactions_end_thread(void)
{
	struct transactions *tx = runtime_thread.transactions;

	if (!tx)
		return;
	transactions_drop(tx, &runtime_session->lines, &runtime_thread.shared->lines);
	session_release_transactions(runtime_session, tx);
	runtime_thread.transactions = NULL;
}

static void update_judges(const struct transactions *tx)
{
	runtime_thread.judges = transactions_working(tx) || runtime_session->options.tx_only;
	if (tx->full)
		session_limit(
			runtime_session, thread_owner(),
			"a transaction with too many ranges: not all stores in it were judged");
}

/* ---- begin and end ---- */

void event_tx_begin(const void *pool, const struct frame *frame)
{
	struct session_thread *thread = runtime_recovers ? NULL : thread_enter();
	struct transactions *tx = thread ? own_transactions() : NULL;
	const struct session_file *file;
	uint64_t low = 0, high = 0;
	uint32_t stack;

	if (tx) {
		file = session_file_at(runtime_session, (uintptr_t)pool);
		if (file) {
			low = file->base;
			high = file->base + file->reserved;
		}
		stack = stack_capture(frame);
		transactions_begin(tx, stack, low, high);
		update_judges(tx);
		tell(thread, PERDURE_EVENT_TX_BEGIN, 0, (void *)low, high - low, stack);
	}
	if (thread)
		thread_leave();
}

/*
 * What the library writes back at the end, if that is not seen. Nothing is protected any more, once
 * its log is gone, which is when its next changes are found.
 */
static void log_finish(const struct session_thread *thread, const struct transactions *tx,
		       bool persists, uint32_t stack)
{
	const uint32_t kept = TRANSACTIONS_NO_FLUSH | TRANSACTIONS_ATOMIC;

	for (uint32_t i = 1; persists && i <= tx->log.used; i++) {
		const struct range *range = &tx->log.node[i];

		if (!(range->flags & kept))
			log_event(HISTORY_PERSIST, 0, thread->lines.id, range->start,
				  range->end - range->start, stack, NULL);
	}
	runtime_thread.releases = true;
}

static void finish(struct session_thread *thread, struct transactions *tx, bool commit,
		   bool prebuilt, uint32_t stack)
{
	if (!transactions_working(tx))
		return;
	if (runtime_logs && tx->depth == 1)
		log_finish(thread, tx, commit && prebuilt, stack);
	if (transactions_finish(tx, &runtime_session->lines, &thread->lines, commit, prebuilt,
				stack) &&
	    prebuilt)
		__perdure_inline.pending = 0;
	update_judges(tx);
	tell(thread, commit ? PERDURE_EVENT_TX_COMMIT : PERDURE_EVENT_TX_ABORT, prebuilt, NULL, 0,
	     stack);
}

void event_tx_finish(bool commit, bool prebuilt, const struct frame *frame)
{
	struct transactions *tx = runtime_thread.transactions;
	struct session_thread *thread;

	if (!tx || !transactions_working(tx) || !(thread = thread_enter()))
		return;
	finish(thread, tx, commit, prebuilt, stack_capture(frame));
	thread_leave();
}

void event_tx_end(bool prebuilt, const struct frame *frame)
{
	struct transactions *tx = runtime_thread.transactions;
	struct session_thread *thread;
	uint32_t stack;

	if (!tx || !tx->depth || !(thread = thread_enter()))
		return;
	stack = stack_capture(frame);
	finish(thread, tx, false, prebuilt, stack);
	transactions_end(tx);
	update_judges(tx);
	tell(thread, PERDURE_EVENT_TX_END, 0, NULL, 0, stack);
	thread_leave();
}

/* ---- ranges and objects ---- */

void event_tx_add(const void *p, size_t size, uint32_t flags, const struct frame *frame)
{
	uint32_t model = (flags & PERDURE_TX_NO_FLUSH ? TRANSACTIONS_NO_FLUSH : 0) |
			 (flags & PERDURE_TX_NO_SNAPSHOT ? TRANSACTIONS_NO_SNAPSHOT : 0);
	struct transactions *tx = runtime_thread.transactions;
	struct session_thread *thread;
	uint32_t stack, earlier;
	uint64_t again;

	if (!in_window(p) || !size || runtime_recovers || !(thread = thread_enter()))
		return;
	p = place_in_window(p);
	stack = stack_capture(frame);
	earlier = tx ? transactions_add(tx, (uintptr_t)p, size, stack, model, &again) : 0;
	if (earlier)
		check_duplicate_add(&thread->lines, (uintptr_t)p, size, again, stack, earlier);
	tell(thread, PERDURE_EVENT_TX_ADD, flags, p, size, stack);
	thread_leave();
}

void event_alloc(const void *p, size_t size, uint32_t detail, const struct frame *frame)
{
	uint32_t flags = (detail & PERDURE_TX_NO_FLUSH ? TRANSACTIONS_NO_FLUSH : 0) |
			 (detail & PERDURE_TX_ATOMIC ? TRANSACTIONS_ATOMIC : 0);
	struct session_thread *thread =
		in_window(p) && size && !runtime_recovers ? thread_enter() : NULL;
	struct transactions *tx = thread ? own_transactions() : NULL;
	uint32_t stack;

	p = place_in_window(p);
	if (tx) {
		stack = stack_capture(frame);
		transactions_alloc(tx, (uintptr_t)p, size, stack, flags);
		/* Nobody finds the object if the transaction does not commit. */
		if (runtime_logs && transactions_working(tx) && !(flags & TRANSACTIONS_ATOMIC))
			log_event(HISTORY_PROTECT, 0, thread->lines.id, (uintptr_t)p, size, stack,
				  NULL);
		tell(thread, PERDURE_EVENT_ALLOC, detail, p, size, stack);
	}
	if (thread)
		thread_leave();
}

void event_free(const void *p, size_t size, const struct frame *frame)
{
	struct session_thread *thread =
		in_window(p) && size && !runtime_recovers ? thread_enter() : NULL;
	struct transactions *tx = runtime_thread.transactions;
	uint32_t stack;

	if (!thread)
		return;
	p = place_in_window(p);
	stack = stack_capture(frame);
	if (!tx || !transactions_free(tx, (uintptr_t)p, size, stack))
		lines_forget(&runtime_session->lines, &thread->lines, (uintptr_t)p, size);
	tell(thread, PERDURE_EVENT_FREE, 0, p, size, stack);
	thread_leave();
}

void event_reserve(const void *p, size_t size, uint64_t key, bool frees, const struct frame *frame)
{
	struct session_thread *thread =
		in_window(p) && size && !runtime_recovers ? thread_enter() : NULL;

	if (!thread)
		return;
	p = place_in_window(p);
	reservations_add(&runtime_session->reservations, thread->lines.owner,
			 &(struct reservation){
				 .process = runtime_image + 1,
				 .key = key,
				 .start = (uintptr_t)p,
				 .end = (uintptr_t)p + size,
				 .frees = frees,
			 });
	if (runtime_session->reservations.lost)
		session_limit(runtime_session, thread_owner(),
			      "too many reserved objects: some were taken for ordinary ones");
	if (!frees)
		tell(thread, PERDURE_EVENT_ALLOC, PERDURE_TX_RESERVED, p, size,
		     stack_capture(frame));
	thread_leave();
}

void event_publish(uint64_t key, uint64_t count, uint64_t stride, bool cancel)
{
	struct reservations *all = &runtime_session->reservations;
	const struct transactions *tx = runtime_thread.transactions;
	struct session_thread *thread = all->used && !runtime_recovers ? thread_enter() : NULL;

	if (!thread)
		return;
	for (uint64_t i = 0; i < count && i < RESERVATIONS; i++, key += stride) {
		if (!cancel && tx && transactions_working(tx))
			reservations_publish_later(all, &thread->lines, runtime_image, key);
		else
			reservations_end(all, &runtime_session->lines, &thread->lines,
					 runtime_image, key,
					 cancel ? RESERVATIONS_CANCEL : RESERVATIONS_PUBLISH);
	}
	tell(thread, PERDURE_EVENT_PUBLISH, 0, NULL, 0, 0);
	thread_leave();
}

void event_discard(uint64_t since)
{
	struct session *session = runtime_session;
	struct session_thread *thread = runtime_recovers ? NULL : thread_enter();

	if (!thread)
		return;
	for (uint32_t i = 0; i < session->files; i++)
		lines_forget_since(&session->lines, &thread->lines, session->file[i].base,
				   session->file[i].used, since);
	thread_leave();
}

/* ---- stores ---- */

/* A table from constants of the program to what was found out about them, for one process. */
enum { KEPT = 4096 };
struct kept {
	const char *place;
	uint64_t value;
};

static bool look_up(const struct kept *kept, const char *place, uint64_t *value)
{
	const struct kept *entry = &kept[((uintptr_t)place >> 2) % KEPT];

	if (__atomic_load_n(&entry->place, __ATOMIC_ACQUIRE) != place)
		return false;
	*value = entry->value;
	return true;
}

static uint64_t keep(struct kept *kept, const char *place, uint64_t value)
{
	struct kept *entry = &kept[((uintptr_t)place >> 2) % KEPT];

	if (!entry->place) {
		entry->value = value;
		__atomic_store_n(&entry->place, place, __ATOMIC_RELEASE);
	}
	return value;
}

/* --tx-only: the number of the structure around this place that only transactions may change. */
static uint32_t guarded_structure(const char *place)
{
	static struct kept kept[KEPT];
	const struct session_options *options = &runtime_session->options;
	uint64_t number;

	if (!place)
		return 0;
	if (look_up(kept, place, &number))
		return number;
	for (const char *level = place; *place_type(level); level = place_next(level))
		for (uint32_t i = 0; i < options->tx_only; i++)
			if (strcmp(options->tx_only_name[i], place_bare_type(level)) == 0)
				return keep(kept, place,
					    places_intern_level(&runtime_session->places, level,
								thread_owner()));
	return keep(kept, place, 0);
}

void judge_store(struct session_thread *thread, const void *p, uint64_t size, const char *place,
		 uint32_t stack, const struct frame *frame)
{
	const struct transactions *tx = runtime_thread.transactions;
	uint64_t address = (uintptr_t)p;
	uint32_t guarded = runtime_session->options.tx_only ? guarded_structure(place) : 0;
	uint32_t begin = tx && transactions_working(tx) ? transactions_stack(tx) : 0;

	if (tx && !guarded && transactions_covers(tx, address, size))
		return;
	if (guarded ? tx && transactions_protects(tx, address, size) : !begin)
		return;
	if (library_is_inside(frame) || modules_transactional(frame->return_address) ||
	    lines_are_excluded(&runtime_session->lines, address, size))
		return;
	check_unlogged_store(&thread->lines, address, size, stack, begin, guarded);
}

void transactions_judge(const void *p, uint64_t size, const struct frame *frame)
{
	struct session_thread *thread =
		runtime_thread.judges && in_window(p) && size ? thread_enter() : NULL;

	if (!thread)
		return;
	judge_store(thread, place_in_window(p), size, NULL, stack_capture(frame), frame);
	thread_leave();
}

uint32_t places_add(const char *place)
{
	static struct kept kept[KEPT];
	uint64_t number;

	if (look_up(kept, place, &number))
		return number;
	return keep(kept, place, places_intern(&runtime_session->places, place, thread_owner()));
}
