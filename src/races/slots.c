/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a region of a store is kept. Each line has one slot of its own, and gets others when it
 * needs them. Most lines need them only while they are new: so a thread that wants some takes them
 * away from the line to which it has given some longest ago, if all there is over.
 */
#include "model/spin.h"
#include "races/pairs.h"

static uint32_t rests; /* given out so far; number 0 is nobody's */

static struct rest *rest_at(uint32_t number)
{
	return &((struct rest *)TABLE_RESTS)[number];
}

/* ---- slots of several lines, one after the other ---- */

static bool is_over(const struct line *l)
{
	for (unsigned used = l->used & ~1u; used; used &= used - 1)
		if (!pair_is_over(slot_of(l, __builtin_ctz(used))))
			return false;
	return true;
}

/* False if somebody may still want to know what is there. */
static bool take_away(uint32_t number)
{
	struct line *from = rest_at(number)->line;
	bool over;

	if (!spin_try(&from->lock, thread_owner()))
		return false;
	over = *rest_of(from) == number && is_over(from);
	if (over) {
		from->used &= 1;
		*rest_of(from) = 0;
	}
	spin_unlock(&from->lock);
	return over;
}

/* False if there is no room at all. */
static bool give_rest(struct racer *self, struct line *to)
{
	uint32_t *oldest = &self->rest[self->rests++ % RACES_RESTS], number = *oldest;

	if (!number || !take_away(number)) {
		number = __atomic_add_fetch(&rests, 1, __ATOMIC_RELAXED);
		if (number >= TABLE_RESTS_MAX) {
			__atomic_fetch_sub(&rests, 1, __ATOMIC_RELAXED);
			return false;
		}
	}
	*oldest = number;
	rest_at(number)->line = to;
	*rest_of(to) = number;
	return true;
}

/* ---- those of a line ---- */

/* What nobody can ask for any more. */
static bool is_forgotten(const struct line *l, const struct region *r)
{
	enum { KEPT = 4 };

	return pair_is_over(r) && (!journal_on || l->version - r->version >= KEPT);
}

/* All that it has stored is stored again, by another instruction. */
static bool is_replaced(const struct region *r, const struct racer *self, uint64_t bytes)
{
	return r->racer == racer_number(self) && (r->bytes & ~bytes) == 0;
}

/* One that is over, or any one. */
static struct region *give_up(struct line *l)
{
	struct region *oldest = NULL;
	unsigned slots = __builtin_popcount(l->used);

	for (unsigned i = 0; i < slots; i++) {
		struct region *r = slot_of(l, i);

		if (pair_is_over(r) && (!oldest || (int32_t)(r->version - oldest->version) < 0))
			oldest = r;
	}
	if (oldest)
		return oldest;
	__atomic_fetch_add(&runtime_session->races.lost, 1, __ATOMIC_RELAXED);
	return slot_of(l, l->next++ % slots);
}

static struct region *free_slot(struct racer *self, struct line *l)
{
	unsigned free = __builtin_ctz(~(unsigned)l->used);

	if (free >= TABLE_SLOTS || (free && !*rest_of(l) && !give_rest(self, l)))
		return give_up(l);
	l->used |= 1u << free;
	slot_of(l, free)->state = FREE; /* written first: a page that is read first faults twice */
	return slot_of(l, free);
}

struct region *slot_for(struct line *l, struct racer *self, uint64_t bytes, uint32_t stack)
{
	for (unsigned used = l->used; used; used &= used - 1) {
		unsigned i = __builtin_ctz(used);
		struct region *r = slot_of(l, i);

		if (r->racer == racer_number(self) && r->stack == stack)
			return r;
		if (is_replaced(r, self, bytes)) {
			if (!journal_on)
				return r;
			r->state = CLEAN;
			r->persisted = RACES_NEVER;
		}
		if (is_forgotten(l, r)) {
			r->state = FREE;
			l->used &= ~(1u << i);
		}
	}
	return free_slot(self, l);
}
