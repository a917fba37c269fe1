/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a crash can leave in memory. The events of an execution, in the order in which they reached
 * the cache, say for each line which stores were made and since when each of them is certain to be
 * persistent. A crash at point c happens before event c: of each line, the stores that are certain
 * by then are there, and of the others
 *
 *   - ordinary ones: those up to some point, in order, because a line is written back as a whole
 *   - non-temporal ones: any
 *
 * where a store larger than 8 bytes is made of 8-byte pieces, from the lowest address up (or, if so
 * asked for, down),
 *
 * which are the states of Px86 (jaaru.txt §2) as seen from one line; lines are independent.
 *
 * A plain library: no OS calls but for memory, which is the caller's. Built once, read by many.
 */
#ifndef MODEL_HISTORY_H
#define MODEL_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HISTORY_LINE_SIZE = 64, HISTORY_VERSIONS = 256, HISTORY_LOOSE = 16 };

enum history_kind {
	HISTORY_STORE,
	HISTORY_FLUSH,   /* clwb, clflushopt */
	HISTORY_ORDERED, /* clflush */
	HISTORY_FENCE,
	HISTORY_PERSIST,     /* msync and the like: the range is durable at once */
	HISTORY_WORLD,       /* a change outside of memory (a file), durable at once */
	HISTORY_CRASH,       /* the program asks for a crash point here */
	HISTORY_QUIET,       /* no crash points from here on … */
	HISTORY_LOUD,        /* … up to here; they nest */
	HISTORY_INTEREST,    /* if there are any: crash points only from one of these … */
	HISTORY_DISINTEREST, /* … to the next of these */
	HISTORY_ALLOC,   /* a new object; only stores from event number `data` on are its content */
	HISTORY_PROTECT, /* a transaction will restore the range if it does not commit */
	HISTORY_CLOCK,   /* what this thread knows from here on: how many events of each thread */
	HISTORY_RELEASE, /* … and is over, for this thread */
};

enum history_flag {
	HISTORY_NONTEMPORAL = 1,
	HISTORY_ATOMIC = 2,   /* a source-level atomic store of at most 8 bytes */
	HISTORY_FOREIGN = 4,  /* by code that is not seen: trusted, durable at once */
	HISTORY_SINGLE = 8,   /* reaches a line as a whole, however large: movdir64b, cmpxchg16b */
	HISTORY_JOINED = 16,  /* belongs to the event before it: no crash in between */
	HISTORY_LIBRARY = 32, /* by the code of a library that has transactions */
	HISTORY_RELAXED = 64, /* an atomic store that releases nothing */
	HISTORY_UNJUDGED = 128, /* the program asked not to judge it */
	HISTORY_GUESSED = 256,  /* atomic as the instruction is one; the source may say otherwise */
};

struct history_event {
	uint8_t kind;
	uint16_t flags, thread;
	uint32_t stack;
	uint32_t place; /* the structure that it is in, for reports; 0: not known */
	uint64_t address;
	uint64_t size;
	uint64_t data; /* where the bytes of a store are, in the caller's data */
};

/* A store, as far as one line goes. */
struct history_part {
	uint32_t event;
	uint32_t settled; /* the event that makes it persistent; HISTORY_NEVER if none does */
	uint64_t bytes;   /* one bit a byte of the line */
};
#define HISTORY_NEVER UINT32_MAX

struct history_line {
	uint64_t address;
	uint32_t first, parts; /* in history.part, by event */
	bool special;          /* some are non-temporal or foreign */
};

struct history {
	const struct history_event *event;
	uint32_t events;
	const unsigned char *data;
	struct history_line *line; /* by address */
	struct history_part *part;
	uint32_t *crash; /* crash points, ascending; the last one is the end */
	uint32_t lines, parts, crashes;
	void *memory; /* all of the above; the caller frees it */
};

/* The bytes of [start, end) that lie in this line, one bit each. */
static inline uint64_t history_bytes(uint64_t line, uint64_t start, uint64_t end)
{
	unsigned from = start > line ? start - line : 0;
	unsigned to = end < line + HISTORY_LINE_SIZE ? end - line : HISTORY_LINE_SIZE;

	if (start >= line + HISTORY_LINE_SIZE || end <= line)
		return 0;
	return (to == 64 ? ~0ull : (1ull << to) - 1) & ~((1ull << from) - 1);
}

/*
 * Builds the history of these events; the pieces of a large store are made in ascending or
 * descending order. False if memory could not be had from `allocate`.
 */
bool history_build(struct history *history, const struct history_event *event, uint32_t events,
		   const unsigned char *data, bool descending, void *(*allocate)(size_t size));

/* The line at this address; null if nothing was ever stored to it. */
const struct history_line *history_find(const struct history *history, uint64_t address);

/* Why a store is not certain to be persistent at a crash. */
enum history_reason {
	HISTORY_NOT_FLUSHED = 1, /* the line is never written back after it */
	HISTORY_NOT_FENCED,    /* it is, but something is stored before the fence, or none comes */
	HISTORY_FLUSHED_LATER, /* it is, but that is too late */
};

/* `part` is one of the line at this address; `flush` becomes the event that writes it back. */
enum history_reason history_why_uncertain(const struct history *history, uint64_t line,
					  const struct history_part *part, uint32_t crash,
					  uint32_t *flush);

/* ---- what one line can hold after a crash ---- */

/*
 * The stores to a line that matter at a crash: all before `from` are certain, those from `to` on
 * have not happened. Both only move forward with the crash.
 */
struct history_window {
	const struct history_line *line;
	uint32_t from, to;
};

/* Moves the window on to this crash. */
void history_advance(const struct history *history, struct history_window *window, uint32_t crash);

/* Is there only one possibility? */
static inline bool history_is_certain(const struct history_window *window)
{
	return window->from == window->to;
}

/* Puts the parts [first, last) of a line into its content, in order. */
void history_apply(const struct history *history, const struct history_line *line, uint32_t first,
		   uint32_t last, unsigned char content[HISTORY_LINE_SIZE]);

/* One possibility: how many of the uncertain ordinary stores are there, and which loose ones. */
struct history_version {
	uint32_t stores;
	uint32_t loose; /* one bit each */
};

struct history_versions {
	struct history_window window;
	uint32_t crash;
	uint32_t count;    /* of versions; 1: the line is certain */
	uint32_t ordinary; /* uncertain ordinary stores */
	uint32_t loose;    /* uncertain non-temporal ones */
	bool cut;          /* there are more than fit: only the oldest and the newest are here */
	struct history_version version[HISTORY_VERSIONS];
};

void history_versions(const struct history *history, const struct history_window *window,
		      uint32_t crash, struct history_versions *versions);

/*
 * Puts the content of a version into `content`, which holds the line with all that is certain:
 * the parts before window.from.
 */
void history_content(const struct history *history, const struct history_versions *versions,
		     uint32_t version, unsigned char content[HISTORY_LINE_SIZE]);

/*
 * The part that wrote each of the line's bytes last in a version; HISTORY_NEVER where none from
 * window.from on did.
 */
void history_writers(const struct history *history, const struct history_versions *versions,
		     uint32_t version, uint32_t writer[HISTORY_LINE_SIZE]);

/* Is this part in the version? */
bool history_has(const struct history *history, const struct history_versions *versions,
		 const struct history_version *version, uint32_t part);

/* The last part before `end` that wrote the byte; HISTORY_NEVER if none did. */
uint32_t history_last_writer(const struct history *history, const struct history_line *line,
			     uint32_t end, unsigned byte);

#endif
