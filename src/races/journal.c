/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What each thread has loaded since its last release: only while that is open can it race. A load
 * is judged at once if a store is open where it loads from; what is stored later is looked for
 * when the thread is about to release something. So a load leaves nothing behind that others
 * would have to read, and most take no hook at all: see brief.c.
 */
#include "binary/binary.h"
#include "model/mix.h"
#include "model/spin.h"
#include "races/brief.h"

enum { SETTLED = 256 };

bool journal_on;

void journal_start(void)
{
	const struct races_settings *settings = &runtime_session->races.settings;

	journal_on = settings->detectors == RACES_PIFR && !settings->minimal;
	if (journal_on && !runtime_session->listening)
		brief_start();
}

/* How far it may go on without a hook. */
static void limit(struct racer *self)
{
	struct racer_note *end = self->note + RACES_NOTES;

	self->journal.limit = self->regions < races_warm_up        ? self->journal.next
			      : end - self->journal.next < SETTLED ? end
								   : self->journal.next + SETTLED;
}

static uint64_t size_of(const struct racer_note *note)
{
	return note->site & RACES_NO_SITE ? note->site & ~RACES_NO_SITE
					  : brief_sites[note->site].size;
}

/* ---- what was stored since ---- */

static uint32_t stack_of(const struct racer_note *note)
{
	const struct binary_site *site;

	if (note->site & RACES_NO_SITE)
		return note->stack;
	site = &binary_sites[note->site];
	return stack_with_first(note->stack, site->kind == BINARY_START
						     ? site->access
						     : site->address + site->length);
}

static bool is_behind(const struct region *other, const struct racer_note *note)
{
	return (int32_t)(other->version - note->version) > 0;
}

static bool may_conflict(const struct racer *self, const struct racer_note *note, uint64_t bytes)
{
	struct line *l = line_at(note->address);
	bool locked = spin_lock(&l->lock, thread_owner()), any = false;

	for (unsigned used = l->used; used; used &= used - 1) {
		const struct region *other = slot_of(l, __builtin_ctz(used));

		any |= is_behind(other, note) && other->bytes & bytes &&
		       other->racer != racer_number(self);
	}
	if (locked)
		spin_unlock(&l->lock);
	return any;
}

static void judge_later(struct racer *self, const struct racer_note *note)
{
	uint64_t line = note->address & -(uint64_t)LINE;
	struct line *l = line_at(line);
	struct access access = { RACES_LOADS, note->address, size_of(note), .happens = true };
	uint64_t bytes = bytes_in(line, note->address, access.size) & ~lock_bytes(l);
	bool locked;

	if (note->epoch != self->epoch || !may_conflict(self, note, bytes))
		return;
	access.stack = stack_of(note);
	locked = spin_lock(&l->lock, thread_owner());
	for (unsigned used = l->used; used; used &= used - 1) {
		const struct region *other = slot_of(l, __builtin_ctz(used));

		if (is_behind(other, note))
			conflict_judge_later(self, &access, line, bytes, other, note->version);
	}
	if (locked)
		spin_unlock(&l->lock);
}

static void judge_until(struct racer *self, const struct racer_note *end)
{
	for (const struct racer_note *note = self->note; note < end; note++)
		if (version_of(note->address) != note->version)
			judge_later(self, note);
}

static void judge_all(struct racer *self)
{
	judge_until(self, self->journal.next);
}

/* ---- the journal ---- */

/* Those that come back to the same few places again and again wait for others: a few will tell. */
enum { TOLD = 8 };

static void note_progress(struct racer *self, const struct racer_note *note)
{
	uint64_t *seen = &self->seen[spread(note->address) % RACES_SEEN];

	racer_loads(self, TOLD, *seen == note->address);
	*seen = note->address;
}

void journal_settle(struct racer *self)
{
	uint64_t news = 0, line = 0;

	for (const struct racer_note *note = self->journal.settled; note < self->journal.next;
	     note++) {
		const void *p = (const void *)note->address;

		if (note->site & RACES_NO_SITE)
			continue;
		if (news++ % TOLD == 0)
			note_progress(self, note);
		if (note->address / LINE == line || !brief_sites[note->site].acquires)
			continue;
		line = note->address / LINE;
		if (!sync_knows(self, p))
			sync_acquire(self, p);
	}
	regions_count(self, news);
	self->journal.settled = self->journal.next;
	limit(self);
}

void journal_give_back(struct racer *self, uint64_t address, uint64_t size)
{
	enum { FEW = 1024 };

	if (self->journal.next - self->note > FEW) {
		journal_close(self);
		return;
	}
	for (struct racer_note *note = self->note; note < self->journal.next; note++) {
		if (note->address - address >= size)
			continue;
		if (version_of(note->address) != note->version)
			judge_later(self, note);
		note->epoch = RACES_NEVER;
	}
}

void journal_drop(struct racer *self)
{
	self->journal.next = self->journal.settled = self->note;
	limit(self);
}

void journal_close(struct racer *self)
{
	journal_settle(self);
	judge_all(self);
	journal_drop(self);
}

/* Other threads may be just about to note something: that is left out. */
void journal_finish(void)
{
	for (unsigned i = 0; i < racers_used && journal_on; i++) {
		struct racer *racer = &racers[i];
		const struct racer_note *end = racer->journal.next;

		if (racer != racer_current && end > racer->note)
			end--;
		judge_until(racer, end);
	}
}

/* The new process has one thread, of which it must hear first. */
void journal_fork(void)
{
	for (unsigned i = 0; i < racers_used; i++) {
		struct racer *racer = &racers[i];

		if (racer != racer_current)
			racer->journal.next = racer->journal.settled = racer->note;
		racer->journal.limit = racer->journal.next;
	}
}

/* A thread that never releases anything: its oldest regions are over now. */
static void forget_half(struct racer *self)
{
	enum { HALF = RACES_NOTES / 2 };

	judge_all(self);
	for (uint32_t i = 0; i < HALF; i++)
		self->note[i] = self->note[i + HALF];
	self->journal.next -= HALF;
	self->journal.settled -= HALF;
	__atomic_fetch_add(&runtime_session->races.lost, HALF, __ATOMIC_RELAXED);
}

void journal_open(struct racer *self, const struct access *a, uint64_t line, uint64_t bytes)
{
	uint64_t first = __builtin_ctzll(bytes);
	uint32_t version = version_of(line);

	journal_settle(self);
	if (self->journal.next == self->note + RACES_NOTES)
		forget_half(self);
	if (__atomic_load_n(&line_at(line)->open, __ATOMIC_ACQUIRE) & bytes)
		regions_judge(self, a, line, bytes);
	brief_note(self, line + first, RACES_NO_SITE | __builtin_popcountll(bytes), a->stack,
		   version);
	self->journal.settled = self->journal.next;
	limit(self);
}

/* ---- shortly ---- */

uint32_t journal_stack(const uint64_t *at, uint32_t site)
{
	struct racer *self = racer_current;

	if (!self || !at || !brief_is_further_on(self, at, site))
		return 0;
	self->journal.site = site;
	return self->journal.stack;
}

void journal_note_stack(const struct stacks_context *context, uint32_t site)
{
	struct racer *self = racer_current;

	if (!self)
		return;
	self->journal.at = context->at;
	self->journal.value = context->value;
	self->journal.site = site;
	self->journal.stack = context->stack;
	self->journal.context = context;
}

/* The next load by this site needs no hook, if all else is as usual. */
static void note_site(uint32_t site)
{
	struct brief_site *known = brief_sites ? &brief_sites[site] : NULL;

	if (!known || known->plain || !stack_places[site].base)
		return; /* others read it: it is written once */
	known->place = stack_places[site];
	known->plain = !known->locks;
}

bool journal_briefly(struct racer *self, const struct access *a, bool acquires, uint32_t site)
{
	uint64_t line = a->address & -(uint64_t)LINE;

	if (a->address - line + a->size > LINE || regions_is_lock((const void *)a->address))
		return false;
	journal_open(self, a, line, bytes_in(line, a->address, a->size));
	if (acquires) {
		sync_acquire(self, (const void *)a->address);
		self->again = (const void *)a->address;
	}
	note_site(site);
	regions_count(self, 1);
	return true;
}
