/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The transactions of one thread: which bytes are logged, which objects are new. Nested
 * transactions are flat, as in libpmemobj: what an inner one logged stays logged until the
 * outermost one ends, and only that commits anything.
 *
 * A plain library like lines.h: no OS calls, memory is the caller's. One thread's state is only
 * used by that thread.
 */
#ifndef MODEL_TRANSACTIONS_H
#define MODEL_TRANSACTIONS_H

#include "model/lines.h"
#include "model/ranges.h"
#include "model/reservations.h"

enum { TRANSACTIONS_DEPTH = 1024 };

enum transactions_flag {
	TRANSACTIONS_LOGGED = 1,
	TRANSACTIONS_NEW = 2, /* an object allocated in the transaction */
	TRANSACTIONS_FREED = 4,
	TRANSACTIONS_NO_FLUSH = 8,
	TRANSACTIONS_NO_SNAPSHOT = 32, /* an abort does not restore it */
	TRANSACTIONS_ATOMIC = 16,      /* new, but the library's own: it stays, whatever happens */
};

struct transactions_level {
	uint32_t stack; /* of its begin */
	bool working;   /* neither committed nor aborted yet */
};

struct transactions {
	uint32_t depth;
	struct transactions_level level[TRANSACTIONS_DEPTH];
	uint64_t low, high; /* the pool that the outermost one is about */
	bool full;          /* out of memory: not everything is known */
	struct ranges log, freed;
	struct reservations *reservations; /* of all threads; may be null */
	uint32_t process, thread;
};

/* Memory for `count` ranges in each of the two sets. */
void transactions_init(struct transactions *tx, struct range *memory, uint32_t count);

/* [low, high) is the pool; 0, 0 stands for all memory. */
void transactions_begin(struct transactions *tx, uint32_t stack, uint64_t low, uint64_t high);

/*
 * Logs a range; `flags` may be NO_FLUSH and NO_SNAPSHOT. If some byte of it was logged before,
 * returns the stack that did it, otherwise 0; *again is how many were. Nothing happens outside a
 * transaction.
 */
uint32_t transactions_add(struct transactions *tx, uint64_t address, uint64_t size, uint32_t stack,
			  uint32_t flags, uint64_t *again);

/* An allocation inside the transaction; `flags` is NO_FLUSH, ATOMIC, or 0. */
void transactions_alloc(struct transactions *tx, uint64_t address, uint64_t size, uint32_t stack,
			uint32_t flags);

/* A free inside the transaction: happens when it commits. False outside. */
bool transactions_free(struct transactions *tx, uint64_t address, uint64_t size, uint32_t stack);

/*
 * The innermost transaction commits or aborts. If that was the outermost one, the lines learn it:
 * what was logged and what is new has been flushed, if `flushes` (otherwise somebody tells each
 * flush); freed objects are forgotten after a commit, new ones after an abort. Returns whether
 * there was anything to do, and so a fence.
 */
bool transactions_finish(struct transactions *tx, struct lines *lines, struct lines_thread *thread,
			 bool commit, bool flushes, uint32_t stack);

void transactions_end(struct transactions *tx);

/*
 * Its thread or program has ended inside of it: a recovery will undo what the thread stored.
 * `thread` is who judges; null for the coordinator.
 */
void transactions_drop(struct transactions *tx, struct lines *lines, struct lines_thread *thread);

/* Is the thread inside a transaction that works? */
static inline bool transactions_working(const struct transactions *tx)
{
	return tx->depth && tx->depth <= TRANSACTIONS_DEPTH && tx->level[tx->depth - 1].working;
}

/* May these bytes be written in the transaction: each is logged, new, or none of its pool? */
bool transactions_covers(const struct transactions *tx, uint64_t address, uint64_t size);

/* Is every byte logged or new in a transaction that works? */
bool transactions_protects(const struct transactions *tx, uint64_t address, uint64_t size);

/* The begin of the innermost transaction; 0 outside. */
static inline uint32_t transactions_stack(const struct transactions *tx)
{
	uint32_t depth = tx->depth < TRANSACTIONS_DEPTH ? tx->depth : TRANSACTIONS_DEPTH;

	return depth ? tx->level[depth - 1].stack : 0;
}

#endif
