/* SPDX-License-Identifier: BSD-3-Clause */
/* What the first run keeps of each word: inline, because most accesses are noted without a hook. */
#ifndef RACES_LEARN_H
#define RACES_LEARN_H

#include "races/races.h"

enum { LEARN_WORDS = 1 << 20, LEARN_WORD = 8 };

/* What else is known of a word; the greater, the more. */
enum learn_word_kind {
	LEARN_PLAIN,
	LEARN_OWNED,  /* it lies in the stack of a thread, or among its variables */
	LEARN_LOCKED, /* locked instructions change it */
	LEARN_LOCK,   /* and it is a lock */
};

/* Who has touched it last. Unlocked: what is lost is learnt the next time. */
struct learn_word {
	uint64_t address : 48;
	uint64_t kind : 2;
	bool releases : 1, acquires : 1; /* that is known of these instructions */
	struct learn_access {
		uint64_t pc : 48;
		uint64_t thread : 16; /* number + 1 */
	} store, load;
	uint32_t store_epoch, load_epoch;
};
extern HIDDEN struct learn_word *learn_words;

/* Neighbours stay neighbours: programs go from one to the next. */
static inline struct learn_word *learn_word_at(uint64_t address)
{
	enum { AREA = LEARN_WORDS * LEARN_WORD };

	return &learn_words[(address / LEARN_WORD + spread(address / AREA)) % LEARN_WORDS];
}

/* Has another thread done that since this one was made? */
static inline bool learn_is_news(const struct racer *self, struct learn_access access,
				 uint32_t epoch)
{
	return access.thread && access.thread - 1 != racer_number(self) &&
	       self->born[access.thread - 1] < epoch;
}

/* Nothing is written that is there: others look at it. False if it was another instruction. */
static inline bool learn_note(struct learn_access *access, uint32_t *epoch,
			      const struct racer *self, uintptr_t pc)
{
	bool same = access->pc == pc;

	if (!same || access->thread != racer_number(self) + 1u)
		*access = (struct learn_access){ pc, racer_number(self) + 1u };
	if (*epoch != self->epoch)
		*epoch = self->epoch;
	return same;
}

static inline void learn_note_load(struct learn_word *w, const struct racer *self, uintptr_t pc)
{
	if (!learn_note(&w->load, &w->load_epoch, self, pc))
		w->acquires = false;
}

static inline void learn_note_store(struct learn_word *w, const struct racer *self, uintptr_t pc)
{
	if (!learn_note(&w->store, &w->store_epoch, self, pc))
		w->releases = false;
}

/*
 * An access by the instruction at `pc`, of which this is known: is there nothing to be learnt from
 * it, but that it was made? Then that is noted.
 */
static inline bool learn_is_nothing_new(const struct racer *self, uint64_t address, uint64_t size,
					bool loads, bool stores, uintptr_t pc, uint32_t known)
{
	struct learn_word *w = learn_word_at(address);
	uint32_t wanted = RACES_EXECUTED | (in_window((void *)address) ? RACES_PM : 0) |
			  (w->kind == LEARN_LOCK ? RACES_LOCK : 0);

	if (races_alone || address % LEARN_WORD + size > LEARN_WORD ||
	    w->address != (address & -(uint64_t)LEARN_WORD) || wanted & ~known ||
	    (stores && w->kind != LEARN_PLAIN))
		return false;
	loads &= !sync_holds_any(self);
	if (loads && learn_is_news(self, w->store, w->store_epoch) &&
	    !(known & RACES_ACQUIRE && w->releases))
		return false;
	if (stores && !loads && learn_is_news(self, w->load, w->load_epoch) &&
	    !(known & RACES_RELEASE && w->acquires))
		return false;
	if (loads)
		learn_note_load(w, self, pc);
	if (stores)
		learn_note_store(w, self, pc);
	return true;
}

#endif
