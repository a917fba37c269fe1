/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a thread does and a region of another one: inline, because most loads of what is open are
 * noted without a hook.
 */
#ifndef RACES_PAIRS_H
#define RACES_PAIRS_H

#include "model/mix.h"
#include "races/table.h"

static inline bool pair_is_persistent(const struct region *other)
{
	return other->state != DIRTY && other->state != PENDING;
}

static inline bool pair_is_open(const struct region *other)
{
	uint16_t closes = is_store(other) ? other->flusher : other->racer;

	if (other->window != (uint16_t)runtime_session->races.window)
		return false;
	if (!pair_is_persistent(other))
		return true;
	if (runtime_session->races.settings.minimal)
		return false;
	return __atomic_load_n(&racers[closes].epoch, __ATOMIC_ACQUIRE) ==
	       (is_store(other) ? other->persisted : other->epoch);
}

/* Nothing can conflict with it any more. */
static inline bool pair_is_over(const struct region *other)
{
	return !pair_is_open(other) && !(runtime_session->races.settings.detectors & RACES_HB);
}

/* Which bytes may still conflict, and whose all of them are; with the lock of the line. */
static inline void pair_note_open(struct line *l)
{
	uint64_t open = 0;
	uint16_t opener = 0;

	for (unsigned used = l->used; used; used &= used - 1) {
		const struct region *r = slot_of(l, __builtin_ctz(used));

		if (pair_is_over(r))
			continue;
		opener = opener_with(opener, open, r->racer);
		open |= r->bytes;
	}
	if (journal_on)
		__atomic_store_n(&l->opener, opener, __ATOMIC_RELAXED);
	__atomic_store_n(&l->open, open, __ATOMIC_RELAXED);
}

/* What this thread has persisted itself is over for it. */
static inline bool pair_overlaps_now(const struct racer *self, const struct region *other)
{
	return (other->state != CLEAN || other->flusher != racer_number(self)) &&
	       pair_is_open(other);
}

/* Does nothing say that it was over before what this thread does now? */
static inline bool pair_is_unordered(const struct racer *self, const struct region *other)
{
	if (other->window != (uint16_t)runtime_session->races.window)
		return false;
	if (!pair_is_persistent(other))
		return true;
	if (is_store(other))
		return other->flusher != racer_number(self) &&
		       self->clock[other->flusher] < other->persisted;
	return self->clock[other->racer] < other->epoch;
}

/* If they are a race at all; `happens`: this thread's access does. */
static inline uint32_t pair_traits(const struct racer *self, const struct region *other,
				   bool happens)
{
	bool reads = is_store(other) && !pair_is_persistent(other) && other->happened && happens;

	return (pair_overlaps_now(self, other) ? RACES_OVERLAPPED : 0) |
	       (pair_is_unordered(self, other) ? RACES_UNORDERED : 0) |
	       (self->clock[other->racer] < other->epoch ? RACES_UNSYNCHRONISED : 0) |
	       (reads ? RACES_READ_IT : 0);
}

/*
 * Bytes of a line that the thread has stored itself since then and since its last release: it reads
 * those, whatever others had stored there.
 */
static inline uint64_t pair_overwritten(const struct racer *self, const struct line *l,
					const struct region *other)
{
	uint64_t bytes = 0;

	for (unsigned used = l->used; used; used &= used - 1) {
		const struct region *r = slot_of(l, __builtin_ctz(used));

		if (r->racer == racer_number(self) && r->epoch == self->epoch && r->happened &&
		    r->opened == r->version && (int32_t)(r->version - other->version) > 0)
			bytes |= r->bytes;
	}
	return bytes;
}

static inline uint64_t pair_of(uint32_t stack, const struct region *other)
{
	return (uint64_t)stack << 32 | other->stack;
}

/* Where this thread keeps what it has reported of a pair, if it still does. */
static inline struct racer_pair *pair_kept(struct racer *self, uint64_t pair)
{
	return &self->known[spread(pair) % RACES_KNOWN];
}

/*
 * Need a load that is such a pair not be looked at again? That it reads what is not persistent, so
 * that what follows from it is watched, is often enough every few times.
 */
static inline bool pair_is_known(struct racer *self, uint64_t pair, uint32_t traits)
{
	enum { AT_FIRST = 16, SOMETIMES = 8 };
	struct racer_pair *kept = pair_kept(self, pair);

	if (kept->pair != pair || traits & ~kept->traits)
		return false;
	if (!(traits & RACES_READ_IT) || !kept->entry)
		return true;
	kept->reads++;
	return kept->reads >= AT_FIRST && kept->reads % SOMETIMES;
}

#endif
