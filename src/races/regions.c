/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions: those of stores by line, those of loads by thread and line. A load's is open until the
 * next release of its thread, a store's until the first release after it is persistent: that its
 * thread's epoch is still the same says so, nothing is done to close one. For the happens-before
 * detector, regions that are closed are kept as what was done last.
 *
 * A load is noted first and looks for stores then, a store the other way round: one of the two
 * sees the other, but for a moment in which the processor has not yet made the note visible.
 */
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "checkers/checkers.h"
#include "model/spin.h"
#include "races/races.h"

#define TABLE_BASE 0x300000000000ull
#define REST_BASE 0x310000000000ull
enum { SLOTS = 8, LINE = PERDURE_LINE_SIZE, WARM_UP = 1 << 12, COUNTED = 256 };

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
	uint16_t window; /* in which it was opened */
};

struct line {
	uint32_t lock;
	uint8_t used;          /* slots that are not FREE, one bit each */
	uint8_t next;          /* slot to be given up */
	uint16_t words, locks; /* of four bytes each: see regions_note_word */
	uint16_t readers;      /* a bit for each thread that has loaded, by number modulo 16 */
	uint64_t stores;       /* so far */
	struct region first;
} __attribute__((aligned(64)));

/* The other slots, apart: hardly any line needs them. */
struct rest {
	struct region slot[SLOTS - 1];
};

static struct line *const table = (void *)TABLE_BASE;
static struct rest *const rests = (void *)REST_BASE;

static struct region *slot_of(struct line *l, unsigned i)
{
	return i ? &rests[l - table].slot[i - 1] : &l->first;
}

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

	_Static_assert(sizeof(struct line) == LINE, "one line a line");
	if (reserve(TABLE_BASE, lines * sizeof(struct line)) &&
	    reserve(REST_BASE, lines * sizeof(struct rest))) {
		syscall(SYS_madvise, TABLE_BASE, lines * sizeof(struct line), MADV_HUGEPAGE);
		return;
	}
	session_limit(runtime_session, thread_owner(),
		      "no address space for races: nothing was looked for");
	runtime_races = false;
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

static uint32_t version_of(uint64_t line)
{
	return (uint32_t)__atomic_load_n(&line_at(line)->stores, __ATOMIC_ACQUIRE);
}

/* ---- conflicts ---- */

static bool is_open(const struct region *other)
{
	uint16_t closes = is_store(other) ? other->flusher : other->racer;
	uint32_t epoch = __atomic_load_n(&racers[closes].epoch, __ATOMIC_ACQUIRE);

	if (other->window != (uint16_t)runtime_session->races.window)
		return false;
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
	if (other->window != (uint16_t)runtime_session->races.window)
		return false;
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

/* While the window is open all that was done in it is known; later that may not be so. */
static bool is_window_open(const struct racer *self)
{
	const struct session_races *races = &runtime_session->races;

	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return !races->windows || (races->watching && races->window == self->window);
}

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

/* The same, but pairs that this thread has just reported are not counted again. */
static uint32_t report_once(struct racer *self, const struct pair *pair)
{
	uint64_t key = (uint64_t)pair->stack << 32 | pair->other->stack;
	struct racer_pair *known = &self->known[(key * 0x9e3779b97f4a7c15ull >> 40) % RACES_KNOWN];
	bool same = known->pair == key;

	if (!same || pair->traits & ~known->traits) {
		known->traits = pair->traits | (same ? known->traits : 0);
		known->pair = key;
		known->entry = report(self, pair);
	}
	return known->entry;
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
		report_once(self, &deferred.pair[i]);
	deferred.count = 0;
}

/* ---- judging ---- */

/* Has it read what is not persistent? Then it is watched. */
static bool judge(struct racer *self, unsigned actions, uint64_t line, const struct region *other,
		  uint64_t bytes, uint32_t stack, bool happens)
{
	const struct races_settings *settings = &runtime_session->races.settings;
	bool both = is_store(other) ? actions & RACES_LOADS : actions & RACES_STORES;
	bool not_yet = other->state == DIRTY || other->state == PENDING;
	bool overlapped, unordered;
	struct pair pair = { .other = other, .address = line, .stack = stack };
	uint32_t entry;

	if (!both || other->racer == racer_number(self))
		return false;
	pair.bytes = bytes & other->bytes;
	if (!pair.bytes)
		return false;
	overlapped = overlaps_now(self, other);
	unordered = is_unordered(self, other);
	if (!((overlapped && settings->detectors & RACES_PIFR) ||
	      (unordered && settings->detectors & RACES_HB)) ||
	    !is_window_open(self))
		return false;
	pair.loads = is_store(other);
	pair.traits = (overlapped ? RACES_OVERLAPPED : 0) | (unordered ? RACES_UNORDERED : 0) |
		      (self->clock[other->racer] < other->epoch ? RACES_UNSYNCHRONISED : 0) |
		      (pair.loads && not_yet && other->happened && happens ? RACES_READ_IT : 0);
	if (settings->helpers && pair.traits & RACES_READ_IT) {
		defer(self, &pair);
		return false;
	}
	entry = report_once(self, &pair);
	if (!entry || !(pair.traits & RACES_READ_IT))
		return false;
	self->watch.finding = entry;
	self->watch.line = line;
	self->watch.of = other->racer;
	self->watch.store = other->stack;
	return true;
}

/* ---- stores ---- */

static bool is_over(const struct region *r)
{
	return !is_open(r) && !(runtime_session->races.settings.detectors & RACES_HB);
}

/* The slot of this thread's region; a new one if there is none. */
static struct region *slot_for(struct line *l, const struct racer *self, uint64_t bytes,
			       uint32_t stack)
{
	unsigned free;

	for (unsigned used = l->used; used; used &= used - 1) {
		unsigned i = __builtin_ctz(used);
		struct region *r = slot_of(l, i);

		if (r->racer == racer_number(self) &&
		    (r->stack == stack || (r->bytes & ~bytes) == 0))
			return r;
		if (is_over(r)) {
			r->state = FREE;
			l->used &= ~(1u << i);
		}
	}
	free = __builtin_ctz(~(unsigned)l->used);
	if (free < SLOTS) {
		l->used |= 1u << free;
		return slot_of(l, free);
	}
	__atomic_fetch_add(&runtime_session->races.lost, 1, __ATOMIC_RELAXED);
	return slot_of(l, l->next++ % SLOTS);
}

static void put_store(struct line *l, struct racer *self, uint64_t bytes, const struct access *a)
{
	struct region *r = slot_for(l, self, bytes, a->stack);
	bool streamed = a->flags & PERDURE_NONTEMPORAL;
	/* What is not persistent stays so. */
	bool same = r->state == DIRTY && r->racer == racer_number(self) && r->stack == a->stack;

	*r = (struct region){
		.bytes = same ? r->bytes | bytes : bytes,
		.epoch = self->epoch,
		.persisted = RACES_NOT_YET,
		.stack = a->stack,
		.racer = racer_number(self),
		.flusher = racer_number(self),
		.by_owner = streamed,
		.streamed = streamed,
		.state = streamed ? PENDING : DIRTY,
		.happened = a->happens,
		.window = self->window,
	};
	__atomic_store_n(&l->stores, l->stores + 1, __ATOMIC_RELEASE);
}

/* A load of another thread, as a region; false if it is none of this line. */
static bool read_load(const struct racer_set *set, unsigned i, uint64_t line, uint16_t racer,
		      struct region *region)
{
	uint64_t key = __atomic_load_n(&set->key[i], __ATOMIC_ACQUIRE);

	if ((key & -(uint64_t)LINE) != line)
		return false;
	*region = (struct region){
		.bytes = set->load[i].bytes,
		.epoch = set->load[i].epoch,
		.stack = set->load[i].stack,
		.racer = racer,
		.flusher = racer,
		.state = LOADED,
		.happened = set->load[i].happened,
		.window = set->load[i].window,
	};
	return __atomic_load_n(&set->key[i], __ATOMIC_ACQUIRE) == key; /* and still is */
}

static uint16_t reader_bit(unsigned racer)
{
	return (uint16_t)(1u << racer % 16);
}

/* Does the thread still read the line? Judges those that do. */
static bool look_at_loads(struct racer *self, unsigned racer, uint64_t line, uint64_t bytes,
			  const struct access *a)
{
	const struct racer_set *set = &racers[racer].set[line / LINE % RACES_SETS];
	struct region other;
	bool any = false;

	for (unsigned i = 0; i < RACES_WAYS; i++) {
		if (!read_load(set, i, line, racer, &other) || is_over(&other))
			continue;
		any = true;
		judge(self, a->actions, line, &other, bytes, a->stack, a->happens);
	}
	return any;
}

/* Bits are cleared first, and set again for those who still read: nobody is forgotten. */
static void look_for_loads(struct racer *self, struct line *l, uint64_t line, uint64_t bytes,
			   const struct access *a)
{
	uint16_t own = reader_bit(racer_number(self)), readers, still = 0;

	if (!(__atomic_load_n(&l->readers, __ATOMIC_RELAXED) & ~own) && racers_used <= 16)
		return;
	readers = __atomic_exchange_n(&l->readers, 0, __ATOMIC_SEQ_CST);
	for (unsigned i = 0; i < racers_used; i++)
		if (&racers[i] == self)
			still |= readers & own;
		else if (readers & reader_bit(i) && look_at_loads(self, i, line, bytes, a))
			still |= reader_bit(i);
	if (still)
		__atomic_fetch_or(&l->readers, still, __ATOMIC_RELAXED);
}

/* ---- loads ---- */

static uint64_t key_of(uint64_t line, uintptr_t behind)
{
	return line | ((behind ^ behind >> 6) & (LINE - 1));
}

/* One of the same, or one that is not needed any more. */
static unsigned room_for_load(const struct racer *self, struct racer_set *set, uint64_t key,
			      const struct access *a)
{
	unsigned free = RACES_WAYS;

	for (unsigned i = 0; i < RACES_WAYS; i++) {
		const struct racer_load *load = &set->load[i];

		if (set->key[i] == key && load->behind == a->behind && load->stack == a->stack)
			return i;
		if (!set->key[i] || (free == RACES_WAYS && load->epoch != self->epoch))
			free = i;
	}
	if (free < RACES_WAYS)
		return free;
	__atomic_fetch_add(&runtime_session->races.lost, 1, __ATOMIC_RELAXED);
	return (a->stack ^ a->behind >> 2) % RACES_WAYS;
}

static void note_reader(const struct racer *self, uint64_t line)
{
	uint16_t bit = reader_bit(racer_number(self));
	uint16_t *readers = &line_at(line)->readers;

	if (!(__atomic_load_n(readers, __ATOMIC_RELAXED) & bit))
		__atomic_fetch_or(readers, bit, __ATOMIC_RELAXED);
}

static struct racer_load *put_load(struct racer *self, uint64_t line, uint64_t bytes,
				   const struct access *a)
{
	struct racer_set *set = &self->set[line / LINE % RACES_SETS];
	uint64_t key = key_of(line, a->behind);
	unsigned i = room_for_load(self, set, key, a);
	struct racer_load *load = &set->load[i];
	bool same = set->key[i] == key && load->behind == a->behind && load->stack == a->stack &&
		    load->epoch == self->epoch;

	__atomic_store_n(&set->key[i], 0, __ATOMIC_RELEASE); /* others look at it */
	*load = (struct racer_load){
		.bytes = bytes | (same ? load->bytes : 0),
		.epoch = self->epoch,
		.stack = a->stack,
		.sp = (uint32_t)a->sp,
		.behind = a->behind,
		.above = a->above,
		.caller = a->above ? ((const uintptr_t *)a->sp)[a->above] : 0,
		.happened = a->happens,
		.window = self->window,
	};
	__atomic_store_n(&set->key[i], key, __ATOMIC_RELEASE);
	note_reader(self, line);
	return load;
}

static void watch_value(struct racer *self, const struct access *a)
{
	self->watch.address = a->address;
	self->watch.size = a->size;
	self->watch.value = races_value((const void *)a->address, a->size);
}

/* The bytes of which no store by anybody else is open. */
static uint64_t look_for_stores(struct racer *self, struct line *l, uint64_t line, uint64_t bytes,
				const struct access *a)
{
	uint64_t clear = ~0ull;
	bool locked;

	if (!__atomic_load_n(&l->used, __ATOMIC_ACQUIRE))
		return clear;
	locked = spin_lock(&l->lock, thread_owner());
	for (unsigned used = l->used; used; used &= used - 1) {
		const struct region *other = slot_of(l, __builtin_ctz(used));

		if (judge(self, a->actions, line, other, bytes, a->stack, a->happens))
			watch_value(self, a);
		if (other->racer != racer_number(self) && !is_over(other))
			clear &= ~other->bytes;
	}
	if (locked)
		spin_unlock(&l->lock);
	return clear;
}

static bool is_same_load(const struct racer_load *load, uintptr_t behind, uintptr_t sp)
{
	return load->behind == behind && load->sp == (uint32_t)sp && load->above &&
	       ((const uintptr_t *)sp)[load->above] == load->caller;
}

/* This load is synchronisation, unless it was so before and nothing has been stored since. */
static void acquire_bytes(struct racer *self, struct racer_load *load, uint64_t address,
			  uint64_t bytes)
{
	if (!(bytes & ~load->acquired))
		return;
	load->acquired |= bytes;
	sync_acquire(self, (const void *)address);
	self->again = (const void *)address; /* what it will see may have been stored after this */
	self->again_version = load->version;
}

bool regions_load_again(struct racer *self, uint64_t address, uint32_t size, uintptr_t behind,
			uintptr_t sp, bool acquires)
{
	uint64_t line = address & -(uint64_t)LINE, bytes = bytes_in(line, address, size);
	struct racer_set *set = &self->set[line / LINE % RACES_SETS];
	uint64_t key = key_of(line, behind);
	struct racer_load *load;
	uint32_t version;
	unsigned i = 0;
	bool open;

	while (i < RACES_WAYS && (set->key[i] != key || !is_same_load(&set->load[i], behind, sp)))
		i++;
	/* While it is new, a thread takes its time: it might be done before others have started. */
	if (i == RACES_WAYS || self->regions < WARM_UP || address - line + size > LINE ||
	    regions_is_lock((const void *)address))
		return false;
	load = &set->load[i];
	version = version_of(line);
	open = load->epoch == self->epoch;
	load->window = self->window;
	if (!open || bytes & ~load->bytes) {
		load->bytes = open ? load->bytes | bytes : bytes;
		__atomic_store_n(&load->epoch, self->epoch, __ATOMIC_RELEASE);
		note_reader(self, line);
	}
	if (load->version != version || bytes & ~load->clear) {
		struct access access = { RACES_LOADS, address, size, 0,          true,
					 load->stack, behind,  sp,   load->above };

		load->acquired = load->version == version ? load->acquired : 0;
		load->clear = look_for_stores(self, line_at(line), line, bytes, &access);
		load->version = version;
	}
	if (acquires)
		acquire_bytes(self, load, address, bytes);
	self->regions++; /* it gets on */
	return true;
}

uint32_t regions_version(const void *p)
{
	return version_of((uintptr_t)p & -(uint64_t)LINE);
}

/* ---- accesses ---- */

void regions_forget(struct racer *self)
{
	__atomic_fetch_add(&self->epoch, 1, __ATOMIC_SEQ_CST);
	self->pendings = 0;
	self->watch.finding = 0;
	self->again = self->begun = NULL;
	deferred.count = 0;
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
	bool minimal = runtime_session->races.settings.minimal &&
		       !(runtime_session->races.settings.detectors & RACES_HB);
	struct line *l = line_at(line);

	if (a->actions & RACES_LOADS) {
		uint32_t version = version_of(line);
		struct racer_load *load = minimal ? NULL : put_load(self, line, bytes, a);
		uint64_t clear = look_for_stores(self, l, line, bytes, a);

		if (load && a->actions == RACES_LOADS) {
			load->version = version;
			load->clear = clear;
		}
	}
	if (a->actions & RACES_STORES) {
		bool locked = spin_lock(&l->lock, thread_owner());

		put_store(l, self, bytes, a);
		if (locked)
			spin_unlock(&l->lock);
		if (!minimal)
			look_for_loads(self, l, line, bytes, a);
		if (a->flags & PERDURE_NONTEMPORAL)
			note_pending(self, line);
	}
}

void regions_access(struct racer *self, const struct access *a)
{
	uint64_t line = a->address & -(uint64_t)LINE, end = a->address + a->size;

	/* A process may end at any time. */
	if (++self->regions <= COUNTED || self->regions % COUNTED == 0)
		__atomic_fetch_add(&runtime_session->races.regions,
				   self->regions <= COUNTED ? 1 : COUNTED, __ATOMIC_RELAXED);
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
	if (deferred.count)
		forget_deferred(line);
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
