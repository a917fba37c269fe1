/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions of stores, by line. One is open until the first release after it is persistent: that its
 * thread's epoch is still the same says so, nothing is done to close one. For the happens-before
 * detector, regions that are closed are kept as what was done last; otherwise for a few stores
 * more, because others will look later for what was stored since they have loaded.
 */
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "model/spin.h"
#include "races/pairs.h"

static bool reserve(uint64_t base, uint64_t size)
{
	if ((uint64_t)syscall(SYS_mmap, base, size, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
			      0L) != base)
		return false;
	syscall(SYS_madvise, base, size, MADV_DONTDUMP);
	return true;
}

void regions_start(void)
{
	uint64_t lines = SESSION_WINDOW_SIZE / LINE;

	journal_start();
	_Static_assert(sizeof(struct line) == LINE, "one line a line");
	if (reserve(TABLE_BASE, lines * sizeof(struct line)) &&
	    reserve(TABLE_REST_OF, lines * sizeof(uint32_t)) &&
	    reserve(TABLE_RESTS, TABLE_RESTS_MAX * sizeof(struct rest))) {
		syscall(SYS_madvise, TABLE_BASE, lines * sizeof(struct line), MADV_HUGEPAGE);
		return;
	}
	session_limit(runtime_session, thread_owner(),
		      "no address space for races: nothing was looked for");
	runtime_races = false;
}

void regions_prefetch(uint64_t address)
{
	__builtin_prefetch(line_at(address), 1);
}

/* ---- words ---- */

static void note_lock(const void *p)
{
	uint16_t *locks = &line_at((uintptr_t)p)->locks;

	if (__atomic_load_n(locks, __ATOMIC_RELAXED) & word_bit((uintptr_t)p))
		return;
	__atomic_fetch_or(locks, word_bit((uintptr_t)p), __ATOMIC_SEQ_CST);
	loads_disturb((uintptr_t)p & -(uint64_t)LINE);
}

void regions_note_word(const void *p, bool is_lock)
{
	struct line *l = line_at((uintptr_t)p);

	if (!(l->words & word_bit((uintptr_t)p)))
		__atomic_fetch_or(&l->words, word_bit((uintptr_t)p), __ATOMIC_RELAXED);
	if (is_lock)
		note_lock(p);
}

void regions_exclude(const void *p, uint64_t size)
{
	uint64_t word = (uintptr_t)p & -(uint64_t)WORD, end = (uintptr_t)p + size;

	for (; word < end && !runtime_session->races.discovers; word += WORD)
		note_lock((const void *)word);
}

/* Those of its words that are there as a whole. */
static uint16_t words_in(uint64_t bytes)
{
	uint16_t words = 0;

	for (unsigned i = 0; i < LINE / WORD; i++)
		words |= (uint16_t)((bytes >> i * WORD & 0xf) == 0xf) << i;
	return words;
}

static void give_back(struct line *l, uint64_t bytes)
{
	bool locked = spin_lock(&l->lock, thread_owner());

	for (unsigned used = l->used; used; used &= used - 1) {
		unsigned i = __builtin_ctz(used);
		struct region *r = slot_of(l, i);

		r->bytes &= ~bytes;
		if (r->bytes)
			continue;
		r->state = FREE;
		l->used &= ~(1u << i);
	}
	__atomic_store_n(&l->open, l->open & ~bytes, __ATOMIC_RELAXED);
	__atomic_fetch_and(&l->words, ~words_in(bytes), __ATOMIC_RELAXED);
	__atomic_fetch_and(&l->locks, ~words_in(bytes), __ATOMIC_RELAXED);
	if (locked)
		spin_unlock(&l->lock);
}

void regions_give_back(const void *p, uint64_t size)
{
	uint64_t start = (uintptr_t)p, end = start + size;

	for (uint64_t line = start & -(uint64_t)LINE; line < end; line += LINE) {
		struct line *l = line_at(line);
		uint64_t from = line < start ? start : line;

		if (l->words)
			sync_forget((const void *)from, end - from < LINE ? end - from : LINE);
		if (l->words || l->used)
			give_back(l, bytes_in(line, start, size));
	}
}

bool regions_is_word(const void *p)
{
	return line_at((uintptr_t)p)->words & word_bit((uintptr_t)p);
}

bool regions_is_lock(const void *p)
{
	return line_at((uintptr_t)p)->locks & word_bit((uintptr_t)p);
}

/* ---- stores ---- */

/*
 * Who sees the new version sees the region, too. It is the old one if there is nothing new to see:
 * what was not persistent is stored once more.
 */
static void put_store(struct line *l, struct racer *self, uint64_t bytes, const struct access *a)
{
	struct region *r = slot_for(l, self, bytes, a->stack);
	bool streamed = a->flags & PERDURE_NONTEMPORAL;
	/* What is not persistent stays so. */
	bool same = r->state == DIRTY && r->racer == racer_number(self) && r->stack == a->stack &&
		    r->window == (uint16_t)self->window;
	bool news = !journal_on || !same || bytes & ~r->bytes || (a->happens && !r->happened) ||
		    streamed;
	uint32_t version = l->version + news;

	*r = (struct region){
		.bytes = same ? r->bytes | bytes : bytes,
		.epoch = self->epoch,
		.persisted = RACES_NOT_YET,
		.stack = a->stack,
		.opened = same ? r->opened : version,
		.version = version,
		.racer = racer_number(self),
		.flusher = racer_number(self),
		.by_owner = streamed,
		.streamed = streamed,
		.state = streamed ? PENDING : DIRTY,
		.happened = a->happens || (same && r->happened),
		.window = self->window,
	};
	if (journal_on)
		__atomic_store_n(&l->opener, opener_with(l->opener, l->open, racer_number(self)),
				 __ATOMIC_RELAXED);
	__atomic_store_n(&l->open, l->open | bytes, __ATOMIC_RELAXED);
	__atomic_store_n(&l->version, version, __ATOMIC_RELEASE);
}

uint64_t regions_judge(struct racer *self, const struct access *a, uint64_t line, uint64_t bytes)
{
	struct line *l = line_at(line);
	uint64_t clear = ~lock_bytes(l);
	bool locked;

	if (!__atomic_load_n(&l->used, __ATOMIC_ACQUIRE))
		return clear;
	locked = spin_lock(&l->lock, thread_owner());
	for (unsigned used = l->used; used; used &= used - 1) {
		const struct region *other = slot_of(l, __builtin_ctz(used));

		conflict_judge(self, a, line, bytes, other);
		if (other->racer != racer_number(self) && !pair_is_over(other))
			clear &= ~other->bytes;
	}
	pair_note_open(l);
	if (locked)
		spin_unlock(&l->lock);
	return clear;
}

/* ---- accesses ---- */

void regions_forget(struct racer *self)
{
	journal_drop(self);
	__atomic_fetch_add(&self->epoch, 1, __ATOMIC_SEQ_CST);
	self->pendings = 0;
	self->watch.finding = 0;
	self->again = self->begun = NULL;
	conflict_forget();
}

bool regions_is_sampled(struct racer *self)
{
	if (runtime_session->races.settings.sample < 2 || runtime_session->races.windows)
		return true;
	if (++self->skipped < runtime_session->races.settings.sample)
		return false;
	self->skipped = 0;
	return true;
}

static void note_pending(struct racer *self, uint64_t line);

static void access_line(struct racer *self, uint64_t line, uint64_t bytes, const struct access *a)
{
	struct line *l = line_at(line);

	if (a->actions & RACES_LOADS && journal_on)
		journal_open(self, a, line, bytes);
	else if (a->actions & RACES_LOADS)
		loads_open(self, a, line, bytes);
	if (a->actions & RACES_STORES) {
		bool locked = spin_lock(&l->lock, thread_owner());

		put_store(l, self, bytes, a);
		if (locked)
			spin_unlock(&l->lock);
		if (!journal_on)
			loads_judge(self, a, line, bytes);
		if (a->flags & PERDURE_NONTEMPORAL)
			note_pending(self, line);
	}
}

void regions_access(struct racer *self, const struct access *a)
{
	uint64_t line = a->address & -(uint64_t)LINE, end = a->address + a->size;

	regions_count(self, 1);
	for (; line < end; line += LINE)
		access_line(self, line, bytes_in(line, a->address, a->size), a);
}

/* ---- persisting ---- */

static void note_pending(struct racer *self, uint64_t line)
{
	for (unsigned i = self->pendings; i-- > 0;)
		if (self->pending[i] == line)
			return;
	if (self->pendings ==
	    RACES_PENDING) { /* as if it had been fenced: nothing false comes of it */
		regions_complete(self, line);
		return;
	}
	self->pending[self->pendings++] = line;
}

/* Would a fence of this thread complete it? */
static bool waits_for(const struct region *r, const struct racer *self)
{
	uint16_t number = racer_number(self);

	/* Somebody else was faster, but those who wait for the owner know nothing of that. */
	if (r->state == CLEAN)
		return r->by_owner && r->racer == number && r->flusher != number;
	return r->state == PENDING &&
	       ((r->by_owner && r->racer == number) || r->helper == number + 1);
}

static void persist(struct racer *self, uint64_t line, uint8_t from, uint8_t to)
{
	struct line *l = line_at(line);
	bool locked, any = false;

	if (!__atomic_load_n(&l->used, __ATOMIC_RELAXED))
		return;
	locked = spin_lock(&l->lock, thread_owner());
	for (unsigned used = l->used; used; used &= used - 1) {
		struct region *r = slot_of(l, __builtin_ctz(used));
		bool own = r->racer == racer_number(self);

		if (from == PENDING ? !waits_for(r, self)
				    : r->state != DIRTY && r->state != PENDING)
			continue;
		any = true;
		if (from == DIRTY) {
			r->by_owner |= own;
			r->helper = own ? r->helper : racer_number(self) + 1;
		}
		if (from == DIRTY && to == CLEAN && r->streamed)
			continue; /* waits for its fence all the same */
		r->state = to;
		if (to == CLEAN) {
			r->persisted = self->epoch;
			r->flusher = racer_number(self);
		}
	}
	if (locked)
		spin_unlock(&l->lock);
	if (any && to == PENDING)
		note_pending(self, line);
}

void regions_flush(struct racer *self, uint64_t line, bool complete)
{
	line &= -(uint64_t)LINE;
	conflict_persisted(line);
	persist(self, line, DIRTY, complete ? CLEAN : PENDING);
}

void regions_complete(struct racer *self, uint64_t line)
{
	persist(self, line, PENDING, CLEAN);
}

/* ---- what came of it ---- */

/* Small numbers are equal by chance. */
bool regions_is_fed(const struct racer *self, uint64_t address, uint64_t size,
		    const uint64_t *value, const void *from)
{
	enum { SMALL = 256, NEAR = 4096 };
	uint64_t read = self->watch.value, ones = size < 8 ? (1ull << 8 * size) - 1 : ~0ull;

	if (from)
		return (uintptr_t)from < self->watch.address + self->watch.size &&
		       self->watch.address < (uintptr_t)from + size;
	if (value && size == self->watch.size && (*value & ones) == read && read >= SMALL)
		return true;
	return self->watch.size == sizeof(read) && read >= NEAR && address - read < NEAR;
}

void regions_effect(struct racer *self, uint32_t trait)
{
	struct line *l;
	bool locked, still = false;

	if (!self->watch.finding)
		return;
	/* Mostly it was said before. */
	if (trait != RACES_LEFT && !(trait & ~runtime_session->raw.entry[self->watch.finding].race))
		return;
	l = line_at(self->watch.line);
	locked = spin_lock(&l->lock, thread_owner());
	for (unsigned used = l->used; used; used &= used - 1) {
		const struct region *r = slot_of(l, __builtin_ctz(used));

		still |= (r->state == DIRTY || r->state == PENDING) && r->racer == self->watch.of &&
			 r->stack == self->watch.store;
	}
	if (locked)
		spin_unlock(&l->lock);
	if (still)
		__atomic_fetch_or(&runtime_session->raw.entry[self->watch.finding].race, trait,
				  __ATOMIC_RELAXED);
	if (!still || trait == RACES_LEFT)
		self->watch.finding = 0;
}
