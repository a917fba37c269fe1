/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The persistency state of every cache line: which stores may still be lost, and which flushes
 * wait for a fence. This is Px86 as jaaru.txt §2 describes it, seen from the cache: events arrive
 * in the order in which they reach it.
 *
 *   store     the line holds a store that may be lost
 *   clflush   every store of the line is persistent at once
 *   clwb      every store of the line will be persistent at the next fence of the same thread
 *   NT store  is persistent at the next fence of the same thread
 *   fence     completes the thread's own flushes and non-temporal stores, nobody else's
 *
 * Only the last writer of a byte is kept: an overwritten store cannot be lost any more.
 * With LINES_EADR whatever reached the cache is persistent; only non-temporal stores wait.
 *
 * A plain library: no OS calls, all memory is the caller's (and may be shared by processes that
 * map it at one address). Threads may call concurrently: a line is locked while it changes.
 */
#ifndef MODEL_LINES_H
#define MODEL_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LINES_LINE_SIZE = 64, LINES_BLOCK_SHIFT = 14 };

enum lines_touched { LINES_STORED = 1, LINES_EXCLUDED = 2 };

enum lines_model { LINES_PX86, LINES_EADR };

/* A store of which some bytes are not yet persistent. Sequence numbers order a line's entries. */
struct lines_store {
	uint64_t bytes; /* one bit a byte of the line */
	uint64_t event; /* the same for all lines of one store; increases within a thread */
	uint32_t next;
	uint32_t sequence;
	uint32_t stack;
	uint16_t thread;
	uint16_t nontemporal;
};

/* In one cache line, with its first store: most lines have no second one. */
struct lines_line {
	uint32_t lock;
	uint32_t stores;   /* newest first; 0 ends a list */
	uint32_t flushes;  /* pending ones, newest first */
	uint32_t cleaner;  /* the call stack of the last flush, 0 if none */
	uint64_t excluded; /* bytes that the program declared volatile, one bit each */
	uint64_t content;  /* hash of what the last flush found; 0 after a store, or if unknown */
	struct lines_store own; /* LINES_OWN in the list; free while it has no bytes */
} __attribute__((aligned(LINES_LINE_SIZE)));
#define LINES_OWN UINT32_MAX

struct lines_flush {
	uint64_t line; /* index; LINES_NO_LINE once it has nothing left to do */
	uint32_t next_in_line;
	uint32_t next_in_thread;
	uint32_t sequence;
	uint32_t stack;
	uint32_t thread;
	uint32_t nontemporal; /* stands for a non-temporal store: covers nothing else */
};
#define LINES_NO_LINE UINT64_MAX

struct lines_pool {
	uint32_t lock, first_free, free_count;
	uint32_t used, capacity;
};

/* What a thread has in flight. `id` is never used twice; the caller fills id and owner. */
struct lines_thread {
	uint32_t id;
	uint32_t owner; /* lock owner number, not 0, unique among running threads */
	uint32_t flushes;
	uint32_t last_fence;
	uint32_t free_stores, free_stores_count;
	uint32_t free_flushes, free_flushes_count;
	uint64_t event;
	uint64_t locked; /* index + 1 of the line it has locked last, 0 if none */
};

struct lines;

/* What checkers hear. `stack` numbers are the caller's; 0 means unknown. Any member may be null. */
struct lines_listener {
	/* The line had nothing to write back; `earlier` flushed (or streamed) it before. */
	void (*redundant_flush)(struct lines *lines, const struct lines_thread *thread,
				uint64_t address, uint32_t stack, uint32_t earlier);
	void (*redundant_fence)(struct lines *lines, const struct lines_thread *thread,
				uint32_t stack, uint32_t earlier);
	void (*overwritten)(struct lines *lines, const struct lines_thread *thread,
			    uint64_t address, unsigned size, const struct lines_store *old,
			    uint32_t stack);
	/*
	 * The line went away; `flush` is the flush that no fence completed, 0 if there was none.
	 * `thread` is who judges; null for the coordinator.
	 */
	void (*lost)(struct lines *lines, const struct lines_thread *thread, uint64_t address,
		     unsigned size, const struct lines_store *store, uint32_t flush);
};

struct lines {
	enum lines_model model;
	uint64_t base; /* address of the first line */
	uint64_t count;
	struct lines_line *line;
	struct lines_store *store; /* entry 0 of both pools is never used */
	struct lines_flush *flush;
	uint8_t *touched; /* enum lines_touched, one byte for 2^LINES_BLOCK_SHIFT bytes of memory */
	uint32_t concurrent; /* more than one thread or process: lines must be locked */
	/* What threads change, away from what they only look at. */
	struct lines_pool stores __attribute__((aligned(LINES_LINE_SIZE)));
	struct lines_pool flushes;
	uint64_t dropped; /* events lost because a pool was full */
	uint32_t foreign; /* some line changed without a store */
};

/* Who listens. Per process: function addresses differ between processes. Null-terminated. */
void lines_listen(const struct lines_listener *const *listeners);

/* Somebody will ask about this line. */
static inline void lines_prefetch(const struct lines *lines, uint64_t address)
{
	__builtin_prefetch(&lines->line[(address - lines->base) / LINES_LINE_SIZE], 1);
}

/*
 * A store, in two halves, so that the caller's own store happens under the line's lock:
 * lines_begin, write the bytes, lines_end_store. [address, address+size) lies in one line.
 * lines_begin returns false where the thread holds this line already (a signal handler);
 * then lines_end_store must not be called.
 */
bool lines_begin(struct lines *lines, struct lines_thread *thread, uint64_t address);
void lines_end_store(struct lines *lines, struct lines_thread *thread, uint64_t address,
		     uint64_t bytes, uint32_t stack, bool nontemporal);
/* The same, but false at once if anybody holds the line. */
bool lines_try(struct lines *lines, const struct lines_thread *thread, uint64_t address);
/* Releases the line without a store: a compare-and-swap that failed. */
void lines_cancel(struct lines *lines, uint64_t address);

enum lines_flush_kind {
	LINES_FLUSH,    /* clwb, clflushopt */
	LINES_ORDERED,  /* clflush */
	LINES_ANNOUNCED /* an annotation repeats a flush: never redundant */
};
/*
 * `memory` is the line itself, or null. A line without a store whose content has changed since its
 * last flush was written by somebody unseen: then the flush is not called redundant, and
 * lines->foreign is set.
 */
void lines_flush(struct lines *lines, struct lines_thread *thread, uint64_t address, uint32_t stack,
		 enum lines_flush_kind kind, const volatile uint64_t *memory);

/* `idle`: the caller knows of no other store since the last fence and the fence is an sfence. */
void lines_fence(struct lines *lines, struct lines_thread *thread, uint32_t stack, bool idle);

/* msync, fsync: all bytes of the range are persistent. */
void lines_persist(struct lines *lines, struct lines_thread *thread, uint64_t address,
		   uint64_t size, uint32_t stack);

/* Unmap, exit: report what is lost in the range, then forget it. `thread` may be null. */
void lines_lose(struct lines *lines, struct lines_thread *thread, uint64_t address, uint64_t size);

/* Memory given back (free): forget without a report. */
void lines_forget(struct lines *lines, struct lines_thread *thread, uint64_t address,
		  uint64_t size);

/* The same for the stores of one thread only. */
void lines_forget_thread(struct lines *lines, struct lines_thread *thread, uint64_t address,
			 uint64_t size, uint32_t whose);
/* The same for what one thread has stored from an event on, anywhere in the range. */
void lines_forget_since(struct lines *lines, struct lines_thread *thread, uint64_t address,
			uint64_t size, uint64_t event);

/* Declares bytes volatile, or PM again: stores to volatile ones are not followed. */
void lines_exclude(struct lines *lines, struct lines_thread *thread, uint64_t address,
		   uint64_t size, bool exclude);

/* Is every byte of the range declared volatile? */
bool lines_are_excluded(const struct lines *lines, uint64_t address, uint64_t size);

/* The worst that can be said of any byte of the range. */
enum lines_state { LINES_PERSISTENT, LINES_FLUSHED, LINES_DIRTY };
enum lines_state lines_query(const struct lines *lines, uint64_t address, uint64_t size);

/* Releases what a thread holds that left an operation in the middle. */
void lines_abandon(struct lines *lines, struct lines_thread *thread);

/* The bits of a line's bytes [address, address+size) as used in lines_store. */
static inline uint64_t lines_bytes(uint64_t address, unsigned size)
{
	uint64_t ones = size >= 64 ? ~0ull : (1ull << size) - 1;

	return ones << (address % LINES_LINE_SIZE);
}

#endif
