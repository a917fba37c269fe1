/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions by line. A load's is open until the next release of its thread, a store's until the
 * first release after it is persistent: that its thread's epoch is still the same says so, nothing
 * is done to close one. For the happens-before detector, regions that are closed are kept as what
 * was done last.
 */
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "checkers/checkers.h"
#include "model/spin.h"
#include "races/races.h"

#define TABLE_BASE 0x300000000000ull
enum { SLOTS = 7, LINE = PERDURE_LINE_SIZE, WARM_UP = 1 << 15, COUNTED = 256 };

enum state { FREE, LOADED, DIRTY, PENDING, CLEAN };

struct region {
	uint64_t bytes;
	uint32_t epoch;     /* of its thread, when it was opened last */
	uint32_t persisted; /* the same, when it became persistent */
	uint32_t stack;
	uint16_t racer, flusher; /* who persists it need not be who stored it */
	uint8_t state;
	bool happened;   /* or it was only certain to */
	bool streamed;   /* by a non-temporal store */
	bool by_owner;   /* PENDING: who stored it has written it back … */
	uint16_t helper; /* … or somebody else has: number + 1 */
	uint16_t seen;   /* LOADED: number + 1 of what its thread remembers of it */
};

struct line {
	uint32_t lock;
	uint8_t used;          /* slots that are not FREE, one bit each */
	uint8_t next;          /* slot to be given up */
	uint16_t words, locks; /* of four bytes each: see regions_note_word */
	uint16_t pad;
	uint64_t stores; /* so far */
	uint64_t more_pad;
	struct region slot[SLOTS];
};

static struct line *const table = (void *)TABLE_BASE;

void regions_start(void)
{
	uint64_t size = SESSION_WINDOW_SIZE / LINE * sizeof(struct line);

	_Static_assert(sizeof(struct line) == 256, "four lines a line");
	if ((uint64_t)syscall(SYS_mmap, TABLE_BASE, size, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
			      0L) != TABLE_BASE) {
		session_limit(runtime_session, thread_owner(),
			      "no address space for races: nothing was looked for");
		runtime_races = false;
		return;
	}
	syscall(SYS_madvise, TABLE_BASE, size, MADV_DONTDUMP);
}

static struct line *line_at(uint64_t address)
{
	return &table[(address - SESSION_WINDOW) / LINE];
}

static uint64_t bytes_in(uint64_t line, uint64_t address, uint64_t size)
{
	uint64_t from = address > line ? address - line : 0;
	uint64_t to = address + size - line < LINE ? address + size - line : LINE;

	return (to == LINE ? 0 : 1ull << to) - (1ull << from);
}

static bool is_store(const struct region *r)
{
	return r->state >= DIRTY;
}

/* ---- words ---- */

static uint16_t word_bit(const void *p)
{
	return (uint16_t)(1u << (uintptr_t)p % LINE / 4);
}

void regions_note_word(const void *p, bool is_lock)
{
	struct line *l = line_at((uintptr_t)p);

	if (!(l->words & word_bit(p)))
		__atomic_fetch_or(&l->words, word_bit(p), __ATOMIC_RELAXED);
	if (is_lock && !(l->locks & word_bit(p)))
		__atomic_fetch_or(&l->locks, word_bit(p), __ATOMIC_RELAXED);
}

bool regions_is_word(const void *p)
{
	return line_at((uintptr_t)p)->words & word_bit(p);
}

bool regions_is_lock(const void *p)
{
	return line_at((uintptr_t)p)->locks & word_bit(p);
}

/* ---- what a thread has loaded ---- */

static struct racer_seen *seen_at(struct racer *self, uint64_t line, uintptr_t pc)
{
	return &self->seen[((line ^ pc * 31) * 0x9e3779b97f4a7c15ull >> 40) % RACES_SEEN];
}

/* All bytes of a region. */
static uint64_t bytes_of(const struct region *r, uint64_t line)
{
	const struct racer_seen *s;
	uint64_t more;

	if (r->state != LOADED || !r->seen)
		return r->bytes;
	s = &racers[r->racer].seen[r->seen - 1];
	more = __atomic_load_n(&s->bytes, __ATOMIC_ACQUIRE);
	if (s->epoch != r->epoch || s->stack != r->stack ||
	    __atomic_load_n(&s->line, __ATOMIC_ACQUIRE) != line)
		return r->bytes;
	return r->bytes | more;
}

/* The entry is needed for something else: its region learns what it knows. */
static void give_up_seen(const struct racer *self, struct racer_seen *s)
{
	struct line *l = line_at(s->line);
	bool locked;

	if (!s->longer || s->epoch != self->epoch)
		return;
	locked = spin_lock(&l->lock, thread_owner());
	for (unsigned i = 0; i < SLOTS; i++) {
		struct region *r = &l->slot[i];

		if (r->state == LOADED && r->racer == racer_number(self) && r->stack == s->stack &&
		    r->epoch == s->epoch)
			r->bytes |= s->bytes;
	}
	if (locked)
		spin_unlock(&l->lock);
}

static uint64_t version_of(uint64_t address)
{
	return __atomic_load_n(&line_at(address)->stores, __ATOMIC_ACQUIRE);
}

bool regions_load_again(struct racer *self, uint64_t address, uint32_t size, uintptr_t behind)
{
	uint64_t line = address & -(uint64_t)LINE, bytes = bytes_in(line, address, size);
	struct racer_seen *s = seen_at(self, line, behind);

	/* While it is new, a thread takes its time: it might be done before others have started. */
	if (s->line != line || s->pc != behind || s->epoch != self->epoch ||
	    s->version != version_of(line) || self->regions < WARM_UP ||
	    address - line + size > LINE)
		return false;
	if (bytes & ~s->bytes) {
		if (!s->alone)
			return false;
		s->longer = true;
		__atomic_store_n(&s->bytes, s->bytes | bytes, __ATOMIC_RELEASE);
		if (s->version != version_of(line))
			return false;
	}
	self->regions++; /* it gets on */
	return true;
}

/* ---- conflicts ---- */

static bool is_open(const struct region *other)
{
	uint16_t closes = is_store(other) ? other->flusher : other->racer;
	uint32_t epoch = __atomic_load_n(&racers[closes].epoch, __ATOMIC_ACQUIRE);

	if (other->state == DIRTY || other->state == PENDING)
		return true;
	if (runtime_session->races.settings.minimal)
		return false;
	return epoch == (is_store(other) ? other->persisted : other->epoch);
}

/* What this thread has persisted itself is over for it. */
static bool overlaps_now(const struct racer *self, const struct region *other)
{
	return is_open(other) && (other->state != CLEAN || other->flusher != racer_number(self));
}

/* Does nothing say that it was over before what this thread does now? */
static bool is_unordered(const struct racer *self, const struct region *other)
{
	if (other->state == DIRTY || other->state == PENDING)
		return true;
	if (is_store(other))
		return other->flusher != racer_number(self) &&
		       self->clock[other->flusher] < other->persisted;
	return self->clock[other->racer] < other->epoch;
}

struct pair {
	const struct region *other;
	uint64_t address, bytes;
	uint32_t stack, traits;
	bool loads; /* this thread does */
};

static uint32_t report(struct racer *self, const struct pair *pair)
{
	uint32_t load = pair->loads ? pair->stack : pair->other->stack;
	uint32_t store = pair->loads ? pair->other->stack : pair->stack;
	unsigned first = __builtin_ctzll(pair->bytes);
	const struct racer *loader = pair->loads ? self : &racers[pair->other->racer];
	uint32_t entry = checkers_report(
		&(struct raw_finding){
			.kind = KIND_THREAD_RACE,
			.stack = load,
			.other = store,
			.thread = loader->thread,
			.address = pair->address + first,
			.size = 64 - __builtin_clzll(pair->bytes) - first,
			.race = pair->traits,
		},
		thread_owner());

	if (entry)
		__atomic_fetch_or(&runtime_session->raw.entry[entry].race, pair->traits,
				  __ATOMIC_RELAXED);
	__atomic_fetch_add(&runtime_session->races.found, 1, __ATOMIC_RELAXED);
	return entry;
}

/* Pairs that were reported by this thread a moment ago. */
static bool is_known(struct racer *self, const struct pair *pair)
{
	uint64_t key = (uint64_t)pair->stack << 32 | pair->other->stack;
	struct racer_pair *known = &self->known[(key * 0x9e3779b97f4a7c15ull >> 40) % RACES_KNOWN];

	if (known->pair == key && !(pair->traits & ~known->traits))
		return true;
	known->traits = known->pair == key ? known->traits | pair->traits : pair->traits;
	known->pair = key;
	return false;
}

/* ---- --flush-on-read ---- */

enum { DEFERRED = 8 };
static __thread struct {
	struct pair pair[DEFERRED];
	struct region other[DEFERRED];
	unsigned count;
} deferred __attribute__((tls_model("initial-exec")));

/* What the thread writes back itself before it relies on it is good. */
static void defer(struct racer *self, const struct pair *pair)
{
	unsigned i = deferred.count;

	if (i == DEFERRED)
		regions_rely(self);
	i = deferred.count++;
	deferred.other[i] = *pair->other;
	deferred.pair[i] = *pair;
	deferred.pair[i].other = &deferred.other[i];
}

static void forget_deferred(uint64_t line)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < deferred.count; i++) {
		if (deferred.pair[i].address == line)
			continue;
		deferred.other[kept] = deferred.other[i];
		deferred.pair[kept] = deferred.pair[i];
		deferred.pair[kept].other = &deferred.other[kept];
		kept++;
	}
	deferred.count = kept;
}

void regions_rely(struct racer *self)
{
	for (unsigned i = 0; i < deferred.count; i++)
		if (!is_known(self, &deferred.pair[i]))
			report(self, &deferred.pair[i]);
	deferred.count = 0;
}

/* ---- judging ---- */

static void judge(struct racer *self, unsigned actions, uint64_t line, const struct region *other,
		  uint64_t bytes, uint32_t stack, bool happens)
{
	const struct races_settings *settings = &runtime_session->races.settings;
	bool both = is_store(other) ? actions & RACES_LOADS : actions & RACES_STORES;
	bool not_yet = other->state == DIRTY || other->state == PENDING;
	bool overlapped, unordered;
	struct pair pair = { .other = other, .address = line, .stack = stack };
	uint32_t entry;

	if (!both || other->racer == racer_number(self))
		return;
	pair.bytes = bytes & bytes_of(other, line);
	if (!pair.bytes)
		return;
	overlapped = overlaps_now(self, other);
	unordered = is_unordered(self, other);
	if (!((overlapped && settings->detectors & RACES_PIFR) ||
	      (unordered && settings->detectors & RACES_HB)))
		return;
	pair.loads = is_store(other);
	pair.traits = (overlapped ? RACES_OVERLAPPED : 0) | (unordered ? RACES_UNORDERED : 0) |
		      (self->clock[other->racer] < other->epoch ? RACES_UNSYNCHRONISED : 0) |
		      (pair.loads && not_yet && other->happened && happens ? RACES_READ_IT : 0);
	if (settings->helpers && pair.traits & RACES_READ_IT) {
		defer(self, &pair);
		return;
	}
	if (is_known(self, &pair) && !(pair.traits & RACES_READ_IT))
		return;
	entry = report(self, &pair);
	if (entry && pair.traits & RACES_READ_IT) {
		self->watch.finding = entry;
		self->watch.line = line;
		self->watch.of = other->racer;
		self->watch.store = other->stack;
	}
}

/* ---- opening ---- */

static bool is_over(const struct region *r)
{
	return r->state == FREE ||
	       (!is_open(r) && !(runtime_session->races.settings.detectors & RACES_HB));
}

/* The slot of this thread's region; a new one if there is none. */
static struct region *slot_for(struct line *l, const struct racer *self, bool store, uint64_t bytes,
			       uint32_t stack)
{
	unsigned free;

	for (unsigned used = l->used; used; used &= used - 1) {
		struct region *r = &l->slot[__builtin_ctz(used)];

		if (r->racer == racer_number(self) && is_store(r) == store &&
		    (r->stack == stack || (r->bytes & ~bytes) == 0))
			return r;
		if (is_over(r)) {
			r->state = FREE;
			l->used &= ~(1u << (r - l->slot));
		}
	}
	free = __builtin_ctz(~(unsigned)l->used);
	if (free < SLOTS) {
		l->used |= 1u << free;
		return &l->slot[free];
	}
	__atomic_fetch_add(&runtime_session->races.lost, 1, __ATOMIC_RELAXED);
	return &l->slot[l->next++ % SLOTS];
}

static struct region *put(struct line *l, struct racer *self, bool store, uint64_t bytes,
			  uint32_t stack, uint32_t flags, bool happens)
{
	struct region *r = slot_for(l, self, store, bytes, stack);
	/* What is not persistent stays so; a load of an earlier epoch is over. */
	bool same = r->state != FREE && r->racer == racer_number(self) && r->stack == stack &&
		    is_store(r) == store && (store ? r->state == DIRTY : r->epoch == self->epoch);

	*r = (struct region){
		.bytes = same ? r->bytes | bytes : bytes,
		.epoch = self->epoch,
		.persisted = RACES_NOT_YET,
		.stack = stack,
		.racer = racer_number(self),
		.flusher = racer_number(self),
		.by_owner = store && flags & PERDURE_NONTEMPORAL,
		.streamed = store && flags & PERDURE_NONTEMPORAL,
		.state = !store                        ? LOADED
			 : flags & PERDURE_NONTEMPORAL ? PENDING
						       : DIRTY,
		.happened = happens,
	};
	if (store)
		__atomic_store_n(&l->stores, l->stores + 1, __ATOMIC_RELEASE);
	return r;
}

bool regions_is_sampled(struct racer *self)
{
	if (runtime_session->races.settings.sample < 2)
		return true;
	if (++self->skipped < runtime_session->races.settings.sample)
		return false;
	self->skipped = 0;
	return true;
}

static void note_pending(struct racer *self, uint64_t line);

static void make_room(struct racer *self, uint64_t line, uintptr_t behind)
{
	struct racer_seen *s = seen_at(self, line, behind);

	if (s->line && (s->line != line || s->pc != behind))
		give_up_seen(self, s);
}

static void remember(struct racer *self, uint64_t line, struct region *r, uint64_t version,
		     bool alone, uintptr_t behind)
{
	struct racer_seen *s = seen_at(self, line, behind);

	__atomic_store_n(&s->line, 0, __ATOMIC_RELEASE); /* others look at it */
	s->pc = behind;
	s->bytes = r->bytes;
	s->version = version;
	s->epoch = r->epoch;
	s->stack = r->stack;
	s->alone = alone;
	s->longer = false;
	__atomic_store_n(&s->line, line, __ATOMIC_RELEASE);
	r->seen = s - self->seen + 1;
}

static void access_line(struct racer *self, unsigned actions, uint64_t line, uint64_t bytes,
			uint32_t stack, uint32_t flags, bool happens, uintptr_t behind)
{
	struct line *l = line_at(line);
	bool locked, alone = true, minimal;

	if (actions == RACES_LOADS && behind)
		make_room(self, line, behind);
	locked = spin_lock(&l->lock, thread_owner());
	minimal = runtime_session->races.settings.minimal &&
		  !(runtime_session->races.settings.detectors & RACES_HB);

	for (unsigned used = l->used; used; used &= used - 1) {
		const struct region *other = &l->slot[__builtin_ctz(used)];

		judge(self, actions, line, other, bytes, stack, happens);
		alone &= !is_store(other) || other->racer == racer_number(self) || is_over(other);
	}
	if (actions & RACES_LOADS && !minimal) {
		struct region *r = put(l, self, false, bytes, stack, flags, happens);

		if (actions == RACES_LOADS && behind)
			remember(self, line, r, l->stores, alone, behind);
	}
	if (actions & RACES_STORES)
		put(l, self, true, bytes, stack, flags, happens);
	if (locked)
		spin_unlock(&l->lock);
	if (actions & RACES_STORES && flags & PERDURE_NONTEMPORAL)
		note_pending(self, line);
}

void regions_access(struct racer *self, unsigned actions, uint64_t address, uint64_t size,
		    uint32_t flags, uint32_t stack, bool happens, uintptr_t behind)
{
	uint64_t line = address & -(uint64_t)LINE, end = address + size;

	if (end > line + LINE)
		behind = 0;
	/* A process may end at any time. */
	if (++self->regions <= COUNTED || self->regions % COUNTED == 0)
		__atomic_fetch_add(&runtime_session->races.regions,
				   self->regions <= COUNTED ? 1 : COUNTED, __ATOMIC_RELAXED);
	for (; line < end; line += LINE)
		access_line(self, actions, line, bytes_in(line, address, size), stack, flags,
			    happens, behind);
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
		struct region *r = &l->slot[__builtin_ctz(used)];
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
	if (deferred.count)
		forget_deferred(line);
	persist(self, line, DIRTY, complete ? CLEAN : PENDING);
}

void regions_complete(struct racer *self, uint64_t line)
{
	persist(self, line, PENDING, CLEAN);
}

/* ---- what came of it ---- */

void regions_effect(struct racer *self, uint32_t trait)
{
	struct line *l;
	bool locked, still = false;

	if (!self->watch.finding)
		return;
	l = line_at(self->watch.line);
	locked = spin_lock(&l->lock, thread_owner());
	for (unsigned i = 0; i < SLOTS; i++) {
		const struct region *r = &l->slot[i];

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
