/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions of loads, by thread and line. Most loads are of lines to which nobody else has stored
 * since the thread looked last: these touch nothing that threads share. Who stores tells those who
 * have loaded from the line to look again.
 */
#include "model/mix.h"
#include "model/spin.h"
#include "races/pairs.h"

enum { LINE_PLACES = 2 };

/* The places for a line. Lines that are neighbours stay so. */
static struct racer_line *place_of(struct racer *racer, uint64_t line, unsigned i)
{
	enum { NEIGHBOURS = 8 };
	uint64_t hash = spread(line / (NEIGHBOURS * LINE));

	return &racer->line[(hash ^ (line / LINE % NEIGHBOURS) ^ i * NEIGHBOURS) % RACES_LINES];
}

/* ---- by the thread itself ---- */

/* Others may be looking at it: see read_load. */
static void take_line(struct racer_line *l, uint64_t line)
{
	__atomic_store_n(&l->line, 0, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < RACES_EACH; i++)
		l->load[i] = (struct racer_load){ 0 };
	l->clear = l->acquired = 0;
	l->version = l->epoch = 0;
	__atomic_store_n(&l->line, line, __ATOMIC_RELEASE);
}

static struct racer_load *take_load(struct racer_load *load, uint32_t stack)
{
	__atomic_store_n(&load->epoch, 0, __ATOMIC_RELEASE);
	load->bytes = 0;
	load->stack = stack;
	return load;
}

/* The line is in neither place, or there are too many loads of it. */
static struct racer_load *make_room(struct racer *self, uint64_t line, uint32_t stack,
				    struct racer_line **found)
{
	struct racer_line *first = place_of(self, line, 0), *second = place_of(self, line, 1);
	struct racer_line *older = second->epoch < first->epoch ? second : first;

	if (older->epoch == self->epoch)
		__atomic_fetch_add(&runtime_session->races.lost, 1, __ATOMIC_RELAXED);
	*found = older;
	if (older->line == line)
		return take_load(&older->load[stack % RACES_EACH], stack);
	take_line(older, line);
	return take_load(&older->load[0], stack);
}

/* That of the stack, or the one that is needed least, none or the oldest; null if all are open. */
static inline struct racer_load *load_among(const struct racer *self, struct racer_line *l,
					    uint32_t stack)
{
	unsigned oldest = 0;

	for (unsigned i = 0; i < RACES_EACH; i++) {
		if (l->load[i].stack == stack)
			return &l->load[i];
		if (l->load[i].epoch < l->load[oldest].epoch)
			oldest = i;
	}
	return l->load[oldest].epoch == self->epoch ? NULL : take_load(&l->load[oldest], stack);
}

static struct racer_load *load_of(struct racer *self, uint64_t line, uint32_t stack,
				  struct racer_line **found)
{
	struct racer_load *load = NULL;

	for (unsigned i = 0; i < LINE_PLACES && !load; i++) {
		*found = place_of(self, line, i);
		if ((*found)->line == line)
			load = load_among(self, *found, stack);
	}
	return load ? load : make_room(self, line, stack, found);
}

static uint16_t reader_bit(unsigned racer)
{
	return (uint16_t)(1u << racer % 16);
}

static void note_reader(const struct racer *self, uint64_t line)
{
	uint16_t bit = reader_bit(racer_number(self));
	uint16_t *readers = &line_at(line)->readers;

	if (!(__atomic_load_n(readers, __ATOMIC_RELAXED) & bit))
		__atomic_fetch_or(readers, bit, __ATOMIC_SEQ_CST);
}

static void look(struct racer *self, const struct access *a, struct racer_line *l, uint64_t bytes)
{
	uint32_t version = version_of(l->line);
	uint64_t clear;

	if (l->version != version)
		l->acquired = 0;
	l->version = version;
	note_reader(self, l->line);
	clear = regions_judge(self, a, l->line, bytes);
	/* Who stores now has told this thread so, or it sees the version. */
	__atomic_exchange_n(&l->clear, clear, __ATOMIC_SEQ_CST);
	if (version_of(l->line) != version)
		__atomic_store_n(&l->clear, 0, __ATOMIC_RELAXED);
}

static inline bool is_clear(const struct racer_line *l, uint64_t bytes)
{
	return !(bytes & ~__atomic_load_n(&l->clear, __ATOMIC_RELAXED));
}

static inline void note_load(struct racer *self, const struct access *a, struct racer_load *load,
			     struct racer_line *l, uint64_t bytes)
{
	if (load->epoch == self->epoch) {
		load->bytes |= bytes;
	} else {
		load->bytes = bytes;
		__atomic_store_n(&load->epoch, self->epoch, __ATOMIC_RELEASE);
		l->epoch = self->epoch;
	}
	if (!is_clear(l, bytes))
		look(self, a, l, bytes);
}

void loads_open(struct racer *self, const struct access *a, uint64_t line, uint64_t bytes)
{
	struct racer_line *l;
	struct racer_load *load;

	if (races_are_minimal()) {
		regions_judge(self, a, line, bytes);
		return;
	}
	load = load_of(self, line, a->stack, &l);
	note_load(self, a, load, l, bytes);
}

/* ---- shortly ---- */

/* This load is synchronisation, unless it was so before and nothing has been stored since. */
static void acquire(struct racer *self, struct racer_line *l, uint64_t address, uint64_t bytes)
{
	if (!(bytes & ~l->acquired))
		return;
	l->acquired |= bytes;
	sync_acquire(self, (const void *)address);
	self->again = (const void *)address; /* what it will see may have been stored after this */
}

struct racer *loads_reader(void)
{
	const struct session_races *races = &runtime_session->races;
	struct racer *self = racer_current;

	if (!self || !runtime_thread.shared || self->regions < races_warm_up || races->discovers ||
	    races_are_minimal() || runtime_session->listening || runtime_thread.busy)
		return NULL;
	return races->windows && self->window != races->window ? NULL : self;
}

bool loads_briefly(struct racer *self, const struct access *a, bool acquires)
{
	uint64_t line = a->address & -(uint64_t)LINE, bytes = bytes_in(line, a->address, a->size);
	struct racer_line *l = place_of(self, line, 0);
	struct racer_load *load = NULL;

	if (a->address - line + a->size > LINE)
		return false;
	if (!regions_is_sampled(self))
		return true;
	/* Mostly the line is where it belongs, and what is loaded clear, which locks never are. */
	if (l->line == line && is_clear(l, bytes))
		load = load_among(self, l, a->stack);
	if (!load && regions_is_lock((const void *)a->address))
		return false;
	if (!load)
		load = load_of(self, line, a->stack, &l);
	racer_loads(self, 1, !(bytes & ~load->bytes));
	note_load(self, a, load, l, bytes);
	if (acquires)
		acquire(self, l, a->address, bytes);
	regions_count(self, 1);
	return true;
}

void loads_prefetch(struct racer *self, uint64_t address)
{
	__builtin_prefetch(place_of(self, address & -(uint64_t)LINE, 0), 1);
}

/* ---- by those who store ---- */

/* As a region; false if it is none. */
static bool read_load(const struct racer *racer, const struct racer_load *load,
		      struct region *region)
{
	uint32_t epoch = __atomic_load_n(&load->epoch, __ATOMIC_ACQUIRE);

	*region = (struct region){
		.bytes = __atomic_load_n(&load->bytes, __ATOMIC_ACQUIRE),
		.epoch = epoch,
		.stack = __atomic_load_n(&load->stack, __ATOMIC_ACQUIRE),
		.racer = racer_number(racer),
		.flusher = racer_number(racer),
		.state = LOADED,
		.happened = true,
		.window = racer->window,
	};
	return epoch && __atomic_load_n(&load->epoch, __ATOMIC_ACQUIRE) == epoch;
}

/* Does the thread still read the line? Judges those that do. */
static bool judge_loads(struct racer *self, const struct access *a, struct racer *reader,
			uint64_t line, uint64_t bytes)
{
	struct region other;
	bool any = false;

	for (unsigned i = 0; i < LINE_PLACES; i++) {
		struct racer_line *l = place_of(reader, line, i);

		if (__atomic_load_n(&l->line, __ATOMIC_ACQUIRE) != line)
			continue;
		__atomic_store_n(&l->clear, 0, __ATOMIC_RELAXED);
		for (unsigned k = 0; k < RACES_EACH; k++) {
			if (!read_load(reader, &l->load[k], &other) || pair_is_over(&other))
				continue;
			if (__atomic_load_n(&l->line, __ATOMIC_ACQUIRE) != line)
				break;
			any = true;
			conflict_judge(self, a, line, bytes, &other);
		}
	}
	return any;
}

/* Bits are cleared first, and set again for those who still read: nobody is forgotten. */
void loads_judge(struct racer *self, const struct access *a, uint64_t line, uint64_t bytes)
{
	uint16_t own = reader_bit(racer_number(self)), readers, still = 0;
	struct line *l = line_at(line);

	if (!(__atomic_load_n(&l->readers, __ATOMIC_RELAXED) & ~own) && racers_used <= 16)
		return;
	readers = __atomic_exchange_n(&l->readers, 0, __ATOMIC_SEQ_CST);
	for (unsigned i = 0; i < racers_used; i++)
		if (&racers[i] == self)
			still |= readers & own;
		else if (readers & reader_bit(i) && judge_loads(self, a, &racers[i], line, bytes))
			still |= reader_bit(i);
	if (still)
		__atomic_fetch_or(&l->readers, still, __ATOMIC_RELAXED);
}

void loads_disturb(uint64_t line)
{
	for (unsigned i = 0; i < racers_used; i++)
		for (unsigned k = 0; k < LINE_PLACES; k++) {
			struct racer_line *l = place_of(&racers[i], line, k);

			if (__atomic_load_n(&l->line, __ATOMIC_ACQUIRE) == line)
				__atomic_store_n(&l->clear, 0, __ATOMIC_RELAXED);
		}
}
