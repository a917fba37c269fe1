/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An access is noted in a few nanoseconds, between the instructions of the program: only the entry
 * in entry.S has kept anything. Whatever is not as usual is left to a hook. This code keeps all
 * registers but rax, and so calls nothing that does not: see CMakeLists.txt.
 */
#include "races/brief.h"

#include "binary/binary.h"
#include "model/spin.h"
#include "races/learn.h"
#include "races/pairs.h"

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

struct brief_site *brief_sites;

void brief_start(void)
{
#ifndef __clang__ /* all hits keep vectors then: see quick.c */
	brief_sites = binary_dense_room(BINARY_SITES_MAX * sizeof(*brief_sites));
#endif
}

/* A store that nobody has to be told of. */
static bool may_be_brief(const struct binary_site *site)
{
	return site->kind != BINARY_START && !(site->descriptor & PERDURE_NONTEMPORAL) &&
	       !(site->known & (RACES_RELEASE | RACES_ACQUIRE | RACES_LOCK)) &&
	       !runtime_session->races.settings.helpers;
}

static bool is_known(const struct binary_site *site)
{
	return site->kind == BINARY_START ||
	       (site->known & RACES_EXECUTED && site->known & RACES_PM);
}

bool brief_wants(const struct binary_site *site)
{
	bool discovers = runtime_session->races.discovers;
	struct brief_site *known = brief_sites ? &brief_sites[site - binary_sites] : NULL;

	if (!known || !binary_is_simple(site) || (!discovers && !is_known(site)))
		return false;
	known->size = (uint8_t)site->operand[0].size;
	known->loads = site->operand[0].actions & RACES_LOADS;
	known->stores = site->operand[0].actions & RACES_STORES;
	if (discovers) {
		known->pc = site->address;
		return known->size <= LEARN_WORD;
	}
	known->bytes = bytes_in(0, 0, site->operand[0].size);
	known->acquires = site->known & RACES_ACQUIRE;
	known->locks = site->known & RACES_LOCK;
	return site->operand[0].size <= LINE && (!known->stores || may_be_brief(site));
}

void brief_know(uintptr_t pc)
{
	if (brief_sites && binary_hit_registers)
		brief_sites[binary_hit_registers->site & BINARY_NUMBER].known =
			(uint8_t)learn_known(pc);
}

/* In a section of its own: a signal that comes while it runs must know that. */
#define BRIEF __attribute__((section("races_brief"), no_caller_saved_registers))

static BRIEF inline bool is_in_one_line(uint64_t address, unsigned size)
{
	return address >> PERDURE_WINDOW_SHIFT == PERDURE_WINDOW_INDEX &&
	       address % LINE + size <= LINE;
}

/* Where was the function called from? */
static BRIEF __attribute__((noinline)) bool find_context(struct racer *self, const uint64_t *at,
							 uint64_t rbp)
{
	const struct stacks_context *context = context_find(runtime_thread.shared, at, rbp);

	self->journal.at = NULL;
	if (!context || context->calls)
		return false;
	self->journal.at = at;
	self->journal.value = context->value;
	self->journal.stack = context->stack;
	self->journal.context = context;
	return true;
}

static BRIEF inline uint32_t number_of(const struct binary_brief *kept)
{
	return (uint32_t)kept->site & BINARY_NUMBER;
}

static BRIEF inline const uint64_t *frame_at(const struct binary_brief *kept,
					     struct stack_place place)
{
	return context_at(place, (uintptr_t)(kept + 1) + BINARY_RED_ZONE, kept->rbp);
}

/* The journal says now where the function was called from; false if that is not known. */
static BRIEF __attribute__((noinline)) bool note_context(const struct binary_brief *kept)
{
	struct stack_place place = stack_places[number_of(kept)];
	const uint64_t *at = place.base ? frame_at(kept, place) : NULL;
	struct racer *self = racer_current;

	if (!at)
		return false;
	if (!brief_is_further_on(self, at, number_of(kept)) &&
	    !brief_is_back(self, at, kept->rbp) && !find_context(self, at, kept->rbp))
		return false;
	self->journal.site = number_of(kept);
	return true;
}

/* The stack of this access, if that has been asked for a moment ago; 0 otherwise. */
static BRIEF inline uint32_t stack_of(const struct racer *self, uintptr_t pc)
{
	const struct stacks_first *first =
		context_first(runtime_thread.shared, self->journal.stack, pc);

	return first->from == self->journal.stack && first->pc == pc ? first->to : 0;
}

/* Nothing is open there any more: the next one need not look. */
static BRIEF inline bool is_over(struct line *l)
{
	if (!runtime_thread.owner || !spin_try(&l->lock, runtime_thread.owner))
		return false;
	pair_note_open(l);
	spin_unlock(&l->lock);
	return true;
}

/*
 * Has all been said about such a load of what is open? Others may store meanwhile: then the line
 * has another version at the end, and what they have stored is judged when the thread releases.
 */
static BRIEF __attribute__((noinline)) bool is_judged(uint64_t address,
						      const struct binary_brief *kept)
{
	const struct binary_site *site = &binary_sites[number_of(kept)];
	bool happens = site->kind != BINARY_START, open = false;
	uint64_t bytes = brief_sites[number_of(kept)].bytes << address % LINE;
	struct racer *self = racer_current;
	uint32_t stack = stack_of(self, happens ? site->address + site->length : site->access);
	struct line *l = line_at(address);

	if (!stack || runtime_session->races.settings.helpers)
		return false;
	for (unsigned used = l->used; used; used &= used - 1) {
		const struct region *other = slot_of(l, __builtin_ctz(used));
		uint32_t traits;

		if (!(other->bytes & bytes))
			continue;
		traits = pair_traits(self, other, happens);
		if (other->racer != racer_number(self) && traits & RACES_OVERLAPPED &&
		    !pair_is_known(self, pair_of(stack, other), traits) &&
		    other->bytes & bytes & ~pair_overwritten(self, l, other))
			return false;
		open |= traits & RACES_OVERLAPPED;
	}
	return open || is_over(l);
}

/* The thread's open region of a store with this stack; null if there is none. */
static BRIEF inline struct region *open_store(const struct racer *self, struct line *l,
					      uint32_t stack)
{
	for (unsigned used = l->used; used; used &= used - 1) {
		struct region *r = slot_of(l, __builtin_ctz(used));

		if (r->stack == stack && r->racer == racer_number(self))
			return r->state == DIRTY && r->happened &&
					       r->window == (uint16_t)runtime_session->races.window
				       ? r
				       : NULL;
	}
	return NULL;
}

/* What is not persistent is stored once more, by the same instruction; or more of the line is. */
static BRIEF __attribute__((noinline)) bool is_stored(struct racer *self, uint64_t address,
						      const struct binary_brief *kept)
{
	uint32_t number = number_of(kept), stack;
	const struct binary_site *site = &binary_sites[number];
	uint64_t bytes = brief_sites[number].bytes << address % LINE;
	uintptr_t pc = site->address + site->length;
	struct line *l = line_at(address);
	struct region *r;

	if (!races_alone &&
	    (brief_sites[number].loads || self->watch.finding || self->regions < races_warm_up))
		return false;
	if (!l->used || l->words || l->locks || !note_context(kept))
		return false;
	stack = stack_of(self, pc);
	r = stack ? open_store(self, l, stack) : NULL;
	if (!r || (!races_alone && (bytes & ~r->bytes || r->epoch != self->epoch)))
		return false;
	if (races_alone) {
		r->bytes |= bytes;
		l->open |= bytes;
	}
	self->idle = 0;
	return true;
}

/*
 * A load of a lock is no access to data, but the thread may learn something by it: at once, or, of
 * what was released while it loaded, before it loads the next one.
 */
static BRIEF __attribute__((noinline)) bool is_looked_at(struct racer *self, uint64_t address,
							 bool acquires)
{
	const void *p = (const void *)address;

	if (!racer_may_go_on(self))
		return false;
	if (!acquires)
		return true;
	if ((self->again && self->again != p && !sync_knows(self, self->again)) ||
	    !sync_knows(self, p))
		return false;
	self->again = p;
	return true;
}

/* The first run has nothing to learn from it. */
static BRIEF __attribute__((noinline)) bool is_learnt(struct racer *self, uint64_t address,
						      const struct brief_site *site)
{
	return self && racer_gets_on(self, address) &&
	       learn_is_nothing_new(self, address, site->size, site->loads, site->stores, site->pc,
				    site->known);
}

/* By what is no plain load of data, or was none until now. */
static BRIEF __attribute__((noinline)) bool is_noted(uint64_t address,
						     const struct binary_brief *kept)
{
	const struct brief_site *site = &brief_sites[number_of(kept)];
	struct racer *self = racer_current;

	if (learn_words)
		return is_learnt(self, address, site);
	if (races_alone && !site->stores)
		return true;
	if (!self || !is_in_one_line(address, site->size))
		return false;
	if (site->stores)
		return is_stored(self, address, kept);
	return (site->locks || line_at(address)->locks & word_bit(address)) &&
	       is_looked_at(self, address, site->acquires);
}

/* By a site that brief_wants; false if it needs a hook. For binary_brief alone. */
BRIEF HIDDEN bool brief_access(uint64_t address, const struct binary_brief *kept);

/* What is seldom is done elsewhere: the fewer registers are needed here, the better. */
BRIEF __attribute__((used)) bool brief_access(uint64_t address, const struct binary_brief *kept)
{
	const struct brief_site *site = &brief_sites[number_of(kept)];
	struct racer *self = racer_current;
	const struct line *l = line_at(address);
	uint32_t version;

	if (UNLIKELY(!site->plain || !self || !is_in_one_line(address, site->size)))
		return is_noted(address, kept);
	if (UNLIKELY(l->locks) && l->locks & word_bit(address))
		return is_noted(address, kept);
	if (UNLIKELY(self->journal.next == self->journal.limit))
		return false;
	if (LIKELY(site->place.base == STACK_BY_SP &&
		   brief_is_further_on(self, frame_at(kept, site->place), number_of(kept))))
		self->journal.site = number_of(kept);
	else if (!note_context(kept))
		return false;
	version = __atomic_load_n(&l->version, __ATOMIC_ACQUIRE);
	if (UNLIKELY(__atomic_load_n(&l->open, __ATOMIC_RELAXED) >> address % LINE & site->bytes) &&
	    __atomic_load_n(&l->opener, __ATOMIC_RELAXED) != self->number + 1 &&
	    !is_judged(address, kept))
		return false;
	brief_note(self, address, number_of(kept), self->journal.stack, version);
	return true;
}
