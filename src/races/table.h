/* SPDX-License-Identifier: BSD-3-Clause */
/* What is open on each line of PM, among those who look for races. */
#ifndef RACES_TABLE_H
#define RACES_TABLE_H

#include "races/races.h"

#define TABLE_BASE 0x2e0000000000ull
#define TABLE_REST_OF 0x2f0000000000ull
#define TABLE_RESTS 0x300000000000ull
#define TABLE_RESTS_MAX (1ull << 31)
enum { TABLE_SLOTS = 8, LINE = PERDURE_LINE_SIZE };

enum { ANYBODY = UINT16_MAX };
enum state { FREE, LOADED, DIRTY, PENDING, CLEAN };

struct region {
	uint64_t bytes;
	uint32_t epoch;     /* of its thread, when it was opened last */
	uint32_t persisted; /* the same, when it became persistent; or RACES_NEVER */
	uint32_t stack;
	uint32_t opened, version; /* of the line, with the first and the last store to it */
	uint16_t racer, flusher;  /* who persists it need not be who stored it */
	uint8_t state;
	bool happened;   /* or it was only certain to */
	bool streamed;   /* by a non-temporal store */
	bool by_owner;   /* PENDING: who stored it has written it back … */
	uint16_t helper; /* … or somebody else has: number + 1 */
	uint16_t window; /* in which it was opened */
};

/* Stores; those who have loaded from it are only named. */
struct line {
	uint32_t lock;
	uint8_t used;          /* slots that are not FREE, one bit each */
	uint8_t next;          /* slot to be given up */
	uint16_t words, locks; /* of four bytes each: see regions_note_word */
	union {
		uint16_t readers; /* a bit for each thread that has loaded, by number modulo 16 */
		uint16_t opener; /* with a journal: whose all open bytes are, number + 1; or ANYBODY
				  */
	};
	uint32_t version; /* stores so far */
	uint64_t open;    /* bytes that may be in an open region, and no others */
	struct region first;
} __attribute__((aligned(64)));

/* The other slots, apart: hardly any line needs them for long. */
struct rest {
	struct line *line;
	struct region slot[TABLE_SLOTS - 1];
};

static inline struct line *line_at(uint64_t address)
{
	return (struct line *)TABLE_BASE + (address - SESSION_WINDOW) / LINE;
}

/* The number of the other slots of a line; 0 has nothing in them. */
static inline uint32_t *rest_of(const struct line *l)
{
	return &((uint32_t *)TABLE_REST_OF)[l - (struct line *)TABLE_BASE];
}

/* Without the lock of the line it may soon be a slot of another one. */
static inline struct region *slot_of(const struct line *l, unsigned i)
{
	return i ? &((struct rest *)TABLE_RESTS)[*rest_of(l)].slot[i - 1]
		 : (struct region *)&l->first;
}

static inline uint64_t bytes_in(uint64_t line, uint64_t address, uint64_t size)
{
	uint64_t from = address > line ? address - line : 0;
	uint64_t to = address + size - line < LINE ? address + size - line : LINE;

	return (to == LINE ? 0 : 1ull << to) - (1ull << from);
}

static inline uint32_t version_of(uint64_t line)
{
	return __atomic_load_n(&line_at(line)->version, __ATOMIC_ACQUIRE);
}

enum { WORD = 4 };

/* Of words and locks: that of the word at this address. */
static inline uint16_t word_bit(uint64_t address)
{
	return (uint16_t)(1u << address % LINE / WORD);
}

/* Bytes of the line that hold locks. */
static inline uint64_t lock_bytes(const struct line *l)
{
	uint64_t bytes = 0;

	for (unsigned locks = l->locks; locks; locks &= locks - 1)
		bytes |= 0xfull << 4 * __builtin_ctz(locks);
	return bytes;
}

/* Whose all open bytes are, if some more of this one are. */
static inline uint16_t opener_with(uint16_t opener, uint64_t open, uint16_t racer)
{
	return !open || opener == racer + 1 ? racer + 1 : ANYBODY;
}

static inline bool is_store(const struct region *r)
{
	return r->state >= DIRTY;
}

/* --minimal-regions, which is nothing for the other detector. */
static inline bool races_are_minimal(void)
{
	const struct races_settings *settings = &runtime_session->races.settings;

	return settings->minimal && !(settings->detectors & RACES_HB);
}

/* ---- conflicts.c ---- */

/*
 * What this thread does now to some bytes of a line, and a region of another one. If it has read
 * what is not persistent, it is watched.
 */
HIDDEN void conflict_judge(struct racer *self, const struct access *access, uint64_t line,
			   uint64_t bytes, const struct region *other);
/* The same of what it has loaded when the line had this version, and others have stored since. */
HIDDEN void conflict_judge_later(struct racer *self, const struct access *access, uint64_t line,
				 uint64_t bytes, const struct region *other, uint32_t version);
/* --flush-on-read: the thread has written the line back; or nothing of what it has read counts. */
HIDDEN void conflict_persisted(uint64_t line);
HIDDEN void conflict_forget(void);

/* ---- slots.c ---- */

/* For a store by this thread, with the line's lock: its region's slot, or a new one. */
HIDDEN struct region *slot_for(struct line *l, struct racer *self, uint64_t bytes, uint32_t stack);

/* ---- regions.c ---- */

/* This thread loads: stores of others are judged. The bytes that hold no lock, and of which none of
 * these is open.
 */
HIDDEN uint64_t regions_judge(struct racer *self, const struct access *access, uint64_t line,
			      uint64_t bytes);

/* ---- journal.c ---- */

/* This thread loads some bytes of a line: that is noted, and judged. */
HIDDEN void journal_open(struct racer *self, const struct access *access, uint64_t line,
			 uint64_t bytes);

/* ---- loads.c ---- */

/* This thread loads some bytes of a line: the region is opened, or made longer, and judged. */
HIDDEN void loads_open(struct racer *self, const struct access *access, uint64_t line,
		       uint64_t bytes);
/* This thread has stored: those of others are judged, and they will look at the line again. */
HIDDEN void loads_judge(struct racer *self, const struct access *access, uint64_t line,
			uint64_t bytes);
/* Those who load from it look at the line again. */
HIDDEN void loads_disturb(uint64_t line);

#endif
