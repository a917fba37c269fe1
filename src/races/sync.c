/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What threads know of each other. A thread's epoch is the number of its releases; what it does in
 * an epoch happens before what another one does that knows the epoch to be over. Objects hand such
 * knowledge on: locks, threads, words that are accessed atomically. Several may share one entry
 * of the table: then more is ordered than in truth, and less is reported.
 */
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "binary/binary.h"
#include "model/mix.h"
#include "model/spin.h"
#include "races/races.h"
#include "runtime/hooks.h"

enum { WORDS = 1 << 16 };

/* The clock has two parts: programs seldom have more threads than fit into the first. */
enum { NEAR = 15, FAR = RACERS - NEAR };
struct object {
	uint32_t lock;
	uint32_t clock[NEAR];
} __attribute__((aligned(64)));

/* A word that locked instructions change. */
struct word {
	uint64_t address;
	uint64_t before, after; /* of the last of them */
	uint32_t lock;
	uint32_t epoch; /* of its thread behind it */
	uint16_t racer;
	bool taken;   /* and not given back since */
	bool guarded; /* by another lock, which has a name, when it was taken */
	bool is_lock; /* it was given back once, by who had taken it */
};

struct racer *racers;
static struct object *object;
static uint32_t (*far_clock)[FAR];
bool *sync_handed;
uint32_t *sync_releases; /* of each of them, so far: close together, as they are looked at most */
static struct word *word;
static uint32_t used[RACERS];
uint32_t racers_used;
__thread struct racer *racer_current __attribute__((tls_model("initial-exec")));

void sync_start(void)
{
	racers = binary_dense_room(RACERS * sizeof(*racers));
	object = binary_dense_room(RACES_OBJECTS * sizeof(*object));
	far_clock = binary_room(RACES_OBJECTS * sizeof(*far_clock));
	sync_releases = binary_dense_room(RACES_OBJECTS * sizeof(*sync_releases));
	sync_handed = binary_room(RACES_OBJECTS);
	word = binary_dense_room(WORDS * sizeof(*word));
	if (!racers || !object || !far_clock || !sync_releases || !sync_handed || !word)
		runtime_races = false;
}

/* ---- threads ---- */

struct racer *racer_self(void)
{
	struct racer *self = racer_current;
	uint32_t i;

	if (self)
		return self;
	for (i = 0; i < RACERS; i++)
		if (!__atomic_exchange_n(&used[i], 1, __ATOMIC_ACQUIRE))
			break;
	if (i == RACERS) {
		session_limit(runtime_session, thread_owner(),
			      "more threads at once than can be watched for races");
		return NULL;
	}
	if (i)
		races_meet(); /* whoever has made it */
	self = &racers[i];
	self->number = i;
	if (i >= racers_used)
		racers_used = i + 1;
	__atomic_fetch_add(&self->epoch, 1, __ATOMIC_SEQ_CST); /* of the one before, too */
	self->stack_low = runtime_thread.stack_low;
	self->stack_high = runtime_thread.stack_high;
	self->pointer = (uintptr_t)__builtin_thread_pointer();
	self->again = NULL;
	self->random = runtime_session->races.settings.seed * 2654435761u + i * 40503u + 1;
	self->skipped = i; /* not all the same ones */
	for (i = 0; i < RACES_HELD; i++)
		self->hold[i] = NULL;
	self->watch.finding = 0;
	memset(self->seen, 0, sizeof(self->seen));
	journal_drop(self);
	racer_current = self;
	return self;
}

void racer_end(void)
{
	struct racer *gone = racer_current;

	if (!gone)
		return;
	racer_current = NULL;
	__atomic_fetch_add(&gone->epoch, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&used[gone - racers], 0, __ATOMIC_RELEASE);
}

void racer_yield(void)
{
	syscall(SYS_sched_yield);
}

bool racer_is_others(const struct racer *me, const void *p)
{
	enum { THREAD_LOCAL = 1 << 14, CONTROL = 1 << 12 };
	uintptr_t at = (uintptr_t)p;

	for (unsigned i = 0; i < racers_used; i++) {
		const struct racer *r = &racers[i];

		if (r != me && used[i] &&
		    ((at >= r->stack_low && at < r->stack_high) ||
		     at - (r->pointer - THREAD_LOCAL) < THREAD_LOCAL + CONTROL))
			return true;
	}
	return false;
}

uint64_t sync_progress(const struct racer *me)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < racers_used; i++)
		if (&racers[i] != me)
			sum += __atomic_load_n(&racers[i].regions, __ATOMIC_RELAXED);
	return sum;
}

/* ---- objects ---- */

static uint32_t *clock_of(struct object *o, unsigned racer)
{
	return racer < NEAR ? &o->clock[racer] : &far_clock[o - object][racer - NEAR];
}

/* Without the lock: while somebody releases it, some of that is known a moment earlier. */
void sync_acquire(struct racer *me, const void *p)
{
	uint32_t number = sync_number(p), version, time;

	if (!runtime_session->races.discovers)
		tell(runtime_thread.shared, PERDURE_EVENT_LOCK, 0, p, 0, 0);
	version = __atomic_load_n(&sync_releases[number], __ATOMIC_ACQUIRE);
	if (me->acquired[number] == version)
		return;
	me->acquired[number] = version;
	for (unsigned i = 0; i < racers_used; i++) {
		time = __atomic_load_n(clock_of(&object[number], i), __ATOMIC_RELAXED);
		if (time > me->clock[i])
			me->clock[i] = time;
	}
}

void sync_release(struct racer *me, const void *p)
{
	uint32_t number = sync_number(p), own;
	struct object *to = &object[number];
	bool locked;

	if (!runtime_session->races.discovers)
		tell(runtime_thread.shared, PERDURE_EVENT_UNLOCK, 0, p, 0, 0);
	if (journal_on)
		journal_close(me);
	locked = spin_lock(&to->lock, thread_owner());
	own = __atomic_fetch_add(&me->epoch, 1, __ATOMIC_SEQ_CST);

	for (unsigned i = 0; i < racers_used; i++)
		if (me->clock[i] > *clock_of(to, i))
			*clock_of(to, i) = me->clock[i];
	if (own > *clock_of(to, me->number))
		*clock_of(to, me->number) = own;
	__atomic_store_n(&sync_releases[number], sync_releases[number] + 1, __ATOMIC_RELEASE);
	if (locked)
		spin_unlock(&to->lock);
}

void sync_prefetch(const void *p)
{
	__builtin_prefetch(&object[sync_number(p)], 1);
}

void sync_is_born(struct racer *me)
{
	for (unsigned i = 0; i < RACERS; i++)
		me->born[i] = me->clock[i];
}

/* ---- what a thread holds ---- */

static bool let_go(struct racer *me, const void *p)
{
	for (unsigned i = 0; i < RACES_HELD; i++)
		if (me->hold[i] == p) {
			me->hold[i] = NULL;
			return true;
		}
	return false;
}

static void hold(struct racer *me, const void *p, bool named)
{
	for (unsigned i = 0; i < RACES_HELD; i++)
		if (!me->hold[i]) {
			me->hold[i] = p;
			me->named[i] = named;
			return;
		}
}

void sync_take(struct racer *me, const void *p)
{
	sync_acquire(me, p);
	hold(me, p, true);
}

static bool holds_named(const struct racer *me)
{
	for (unsigned i = 0; i < RACES_HELD; i++)
		if (me->hold[i] && me->named[i] && !sync_handed[sync_number(me->hold[i])])
			return true;
	return false;
}

void sync_give(struct racer *me, const void *p)
{
	if (!let_go(me, p))
		sync_handed[sync_number(p)] = true;
	sync_release(me, p);
}

/* ---- words ---- */

static struct word *word_at(const void *p)
{
	return &word[spread((uintptr_t)p >> 2) % WORDS];
}

/* In PM, the line remembers it: this table forgets. */
static void note_word(const void *p, bool is_lock)
{
	if (runtime_session->races.discovers)
		learn_note_word(p, is_lock);
	else if (in_window(p))
		regions_note_word(p, is_lock);
}

/* Flags look so, too; but they are changed under a lock, which locks need not be. */
static void give_back(struct word *w)
{
	w->is_lock |= !w->guarded;
	w->taken = false;
}

/*
 * The word is not as the last locked instruction has left it: somebody has stored to it, most
 * likely to free a lock, and nobody knew that store. What its thread had open until then is closed
 * at the latest now.
 */
void sync_lock_begin(struct racer *me, const void *p, uint64_t value, bool fails)
{
	struct word *w = word_at(p);
	bool locked = spin_lock(&w->lock, thread_owner());

	if (w->address == (uintptr_t)p && w->racer != me->number && w->after != value) {
		struct racer *other = &racers[w->racer];
		uint32_t epoch = w->epoch;

		__atomic_compare_exchange_n(&other->epoch, &epoch, epoch + 1, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
		/* What it did until then is known here; what it knew is not. */
		if (w->epoch > me->clock[w->racer])
			me->clock[w->racer] = w->epoch;
	}
	if (locked)
		spin_unlock(&w->lock);
	me->before = value;
	me->fails = fails;
	if (!fails)
		sync_release(me, p);
}

/* ---- locks that count ---- */

static bool is_near(uint64_t a, uint64_t b)
{
	enum { NEAR_BY = 64 };

	return a - b + NEAR_BY <= 2 * NEAR_BY;
}

/*
 * Optimistic locks count how often they were given back: the thread that has changed the word, by a
 * little or by a bit, changes it again, and is near to where it began. Counters look the same, but
 * others change them in between.
 */
static bool counts(const struct racer_change *c, uint64_t value)
{
	uint64_t bits = c->before ^ c->after;

	return is_near(value, c->before) && (is_near(c->after, c->before) || !(bits & (bits - 1)));
}

static struct racer_change *change_of(struct racer *me, const void *p)
{
	for (unsigned i = 0; i < RACES_CHANGES; i++)
		if (me->change[i].p == p)
			return &me->change[i];
	return &me->change[me->changes++ % RACES_CHANGES];
}

/* This word is changed for the second time: what came in between may be under its lock. */
static void cross(struct racer *me, const struct racer_change *c)
{
	for (unsigned i = 0; i < RACES_CHANGES; i++)
		if ((int32_t)(me->change[i].number - c->number) > 0)
			me->change[i].crossed = true;
}

/*
 * `last`: who has changed the word before, or null. What is changed under another lock has others
 * shut out by that.
 */
static void learn_from(struct racer *me, const void *p, uint64_t value, uintptr_t pc,
		       const struct racer *last)
{
	struct racer_change *c = change_of(me, p);
	bool again = c->p == p, alone = again && c->after == me->before;

	if (again)
		cross(me, c);
	if (alone && counts(c, value)) {
		if (c->handed && !c->crossed)
			learn_change(c->pc, pc, true);
		c->p = NULL;
		return;
	}
	if (again && !alone)
		learn_change(c->pc, pc, false);
	*c = (struct racer_change){
		.p = p,
		.before = me->before,
		.after = value,
		.pc = pc,
		.handed = last && last != me && !sync_holds_any(me),
		.number = ++me->changed,
	};
}

/* As long as it is not known what it is, others get a chance to change it, or not to. */
static void let_others_change(struct racer *me, uintptr_t pc)
{
	enum { YIELDS = 128 };

	if (racer_random(me) & 1 << 20 && me->yields < YIELDS && !learn_is_settled(pc)) {
		me->yields++;
		racer_yield();
	}
}

void sync_lock_end(struct racer *me, const void *p, uint64_t value, bool stored, uintptr_t pc,
		   uint32_t known)
{
	enum { LOADS = 8 }; /* as much as so many of them */
	struct word *w = word_at(p);
	bool locked;

	sync_acquire(me, p);
	if (!stored || value == me->before) { /* somebody else has the lock */
		racer_waits(me, LOADS);
		return;
	}
	me->idle = 0;
	if (me->fails) /* it was free in time */
		sync_release(me, p);
	locked = spin_lock(&w->lock, thread_owner());
	if (w->address != (uintptr_t)p)
		*w = (struct word){ .address = (uintptr_t)p, .lock = w->lock };
	/* Later runs may find out, too: see races_drop_locks. */
	if (runtime_session->races.discovers ||
	    (!runtime_session->races.windows && !(known & RACES_LOCK)))
		learn_from(me, p, value, pc, w->epoch ? &racers[w->racer] : NULL);
	w->is_lock |= (known & RACES_COUNTS) != 0;
	/* Back to what it was before the same thread changed it: that was a lock. */
	if (w->taken && w->racer == me->number && value == w->before) {
		give_back(w);
	} else {
		w->taken = true;
		w->guarded = holds_named(me);
		w->before = me->before;
	}
	if (!let_go(me, p) && w->is_lock && w->taken)
		hold(me, p, false);
	note_word(p, w->is_lock);
	w->after = value;
	w->racer = me->number;
	w->epoch = me->epoch;
	if (locked)
		spin_unlock(&w->lock);
	if (runtime_session->races.discovers)
		let_others_change(me, pc);
}

static void forget(struct word *w, uintptr_t start, uint64_t size)
{
	bool locked = spin_lock(&w->lock, thread_owner());

	if (w->address - start < size)
		*w = (struct word){ .lock = w->lock };
	if (locked)
		spin_unlock(&w->lock);
}

void sync_forget(const void *p, uint64_t size)
{
	enum { STEP = 4 };
	uintptr_t start = (uintptr_t)p;

	if (size / STEP >= WORDS) {
		for (unsigned i = 0; i < WORDS; i++)
			if (word[i].address - start < size)
				forget(&word[i], start, size);
		return;
	}
	for (uintptr_t at = start & -(uintptr_t)STEP; at < start + size; at += STEP)
		if (word_at((const void *)at)->address - start < size)
			forget(word_at((const void *)at), start, size);
}

bool sync_is_locked_word(const void *p)
{
	return word_at(p)->address == (uintptr_t)p;
}

bool sync_is_lock(const void *p)
{
	const struct word *w = word_at(p);

	return w->address == (uintptr_t)p && w->is_lock;
}

void sync_freed(struct racer *me, const void *p)
{
	struct word *w = word_at(p);
	bool locked = spin_lock(&w->lock, thread_owner());

	if (w->address == (uintptr_t)p && w->taken && w->racer == me->number)
		give_back(w);
	if (w->address == (uintptr_t)p)
		note_word(p, w->is_lock);
	let_go(me, p);
	if (locked)
		spin_unlock(&w->lock);
	sync_release(me, p);
}
