/* SPDX-License-Identifier: BSD-3-Clause */
/* What a thread does and a region of another one: are they a race? */
#include "binary/binary.h"
#include "checkers/checkers.h"
#include "races/pairs.h"

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
	uint64_t key = pair_of(pair->stack, pair->other);
	struct racer_pair *kept = pair_kept(self, key);

	if (kept->pair != key)
		*kept = (struct racer_pair){ .pair = key };
	if (!kept->traits || pair->traits & ~kept->traits) {
		kept->traits |= pair->traits;
		kept->entry = report(self, pair);
	}
	return kept->entry;
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

void conflict_persisted(uint64_t line)
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

void conflict_forget(void)
{
	deferred.count = 0;
}

void regions_rely(struct racer *self)
{
	for (unsigned i = 0; i < deferred.count; i++)
		report_once(self, &deferred.pair[i]);
	deferred.count = 0;
}

/* ---- judging ---- */

static void watch(struct racer *self, const struct access *a, uint64_t line,
		  const struct region *other, uint32_t finding)
{
	self->watch.finding = finding;
	self->watch.line = line;
	self->watch.of = other->racer;
	self->watch.store = other->stack;
	self->watch.address = a->address;
	self->watch.size = a->size;
	self->watch.value = binary_peek((const void *)a->address, a->size);
}

void conflict_judge(struct racer *self, const struct access *a, uint64_t line, uint64_t bytes,
		    const struct region *other)
{
	const struct races_settings *settings = &runtime_session->races.settings;
	bool both = is_store(other) ? a->actions & RACES_LOADS : a->actions & RACES_STORES;
	struct pair pair = { .other = other, .address = line, .stack = a->stack };
	uint32_t entry;

	if (!both || other->racer == racer_number(self))
		return;
	pair.bytes = bytes & other->bytes;
	if (!pair.bytes)
		return;
	pair.loads = is_store(other);
	pair.traits = pair_traits(self, other, a->happens);
	if (!((pair.traits & RACES_OVERLAPPED && settings->detectors & RACES_PIFR) ||
	      (pair.traits & RACES_UNORDERED && settings->detectors & RACES_HB)) ||
	    !is_window_open(self))
		return;
	if (pair.loads)
		pair.bytes &= ~pair_overwritten(self, line_at(line), other);
	if (!pair.bytes)
		return;
	if (settings->helpers && pair.traits & RACES_READ_IT) {
		defer(self, &pair);
		return;
	}
	entry = report_once(self, &pair);
	if (entry && pair.traits & RACES_READ_IT)
		watch(self, a, line, other, entry);
}

/*
 * The region of the load is open, so what was stored behind it came in between; and nobody can
 * have known of the load.
 */
void conflict_judge_later(struct racer *self, const struct access *a, uint64_t line, uint64_t bytes,
			  const struct region *other, uint32_t version)
{
	bool behind = (int32_t)(other->opened - version) > 0;
	struct pair pair = {
		.other = other,
		.address = line,
		.bytes = bytes & other->bytes,
		.stack = a->stack,
		.traits = RACES_OVERLAPPED,
		.loads = true,
	};

	if (other->racer == racer_number(self) || !pair.bytes ||
	    other->window != (uint16_t)self->window || !is_window_open(self))
		return;
	if (behind || self->clock[other->racer] < other->epoch)
		pair.traits |= RACES_UNSYNCHRONISED;
	report_once(self, &pair);
}
