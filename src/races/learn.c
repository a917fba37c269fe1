/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first run: which instructions touch PM, and which of them (or of those that touch ordinary
 * memory) are synchronisation. A word that one thread stores and another one loads without a lock,
 * and nothing orders the two, is: lock-free code publishes so. The word of a lock that is freed by
 * a plain store is, too.
 */
#include "binary/binary.h"
#include "model/mix.h"
#include "races/races.h"

enum { WORDS = 1 << 19, CACHED = 1 << 12, WORD = 8 };

/* Who has touched a word last. Unlocked: what is lost is learnt the next time. */
struct word {
	uint64_t address;
	uintptr_t store, load; /* instructions */
	uint32_t store_epoch, load_epoch;
	uint16_t storer, loader; /* number + 1 */
};
static struct word *word;

/*
 * Before there are threads, all that can be learnt of an instruction is what it touches, and that
 * is soon known: by site, how often it is still looked at.
 */
enum { WANTED = 64 };
static uint8_t *wanted;

void learn_start(void)
{
	word = binary_dense_room(WORDS * sizeof(*word));
	wanted = binary_room(BINARY_SITES_MAX);
	runtime_races &= word && wanted;
}

/* ---- before there are threads ---- */

const uint8_t *learn_wants(uint32_t site)
{
	wanted[site] = WANTED;
	return &wanted[site];
}

void learn_settle(uint32_t site, bool pm)
{
	if (wanted[site])
		wanted[site] = pm ? 0 : wanted[site] - 1;
}

void learn_meet(void)
{
	for (uint32_t i = 0; i < binary_site_count && wanted; i++)
		wanted[i] = WANTED;
}

/* ---- the table of instructions ---- */

static struct races_instruction *entry_of(uintptr_t pc, bool make)
{
	return races_instruction(&runtime_session->races, modules_key(pc), make);
}

/* What is known to be known, by address. */
static struct {
	uintptr_t pc;
	uint32_t flags;
} cached[CACHED];

void learn_is(uintptr_t pc, uint32_t flags)
{
	struct races_instruction *entry;
	unsigned at = pc % CACHED;

	if (cached[at].pc == pc && (cached[at].flags & flags) == flags)
		return;
	entry = entry_of(pc, true);
	if (!entry)
		return;
	flags |= __atomic_fetch_or(&entry->flags, flags, __ATOMIC_RELAXED);
	cached[at].pc = 0;
	cached[at].flags = flags;
	cached[at].pc = pc;
}

/* ---- locks that count ---- */

static void count(uintptr_t pc, bool alone)
{
	struct races_instruction *entry = entry_of(pc, true);

	if (entry)
		__atomic_fetch_add(alone ? &entry->alone : &entry->disturbed, 1, __ATOMIC_RELAXED);
}

void learn_change(uintptr_t first, uintptr_t second, bool alone)
{
	count(first, alone);
	if (second != first)
		count(second, alone);
}

bool learn_is_settled(uintptr_t pc)
{
	const struct races_instruction *entry = entry_of(pc, false);

	return entry && (races_is_of_lock(entry) || entry->disturbed >= RACES_OFTEN);
}

/* ---- what is known ---- */

uint32_t learn_known(uintptr_t pc)
{
	const struct races_instruction *entry;
	unsigned at = pc % CACHED;
	uint32_t flags;

	if (cached[at].pc == pc)
		return cached[at].flags;
	entry = entry_of(pc, false);
	flags = entry ? entry->flags | (races_is_of_lock(entry) ? RACES_LOCK | RACES_COUNTS : 0)
		      : 0;
	cached[at].pc = 0;
	cached[at].flags = flags;
	cached[at].pc = pc;
	return flags;
}

/* ---- words ---- */

static bool is_news(const struct racer *self, uint16_t other, uint32_t epoch)
{
	return other && other - 1 != racer_number(self) && self->born[other - 1] < epoch;
}

static void learn_word(struct racer *self, unsigned actions, uint64_t address, uintptr_t pc)
{
	struct word *w = &word[spread(address / WORD) % WORDS];

	if (w->address != address)
		*w = (struct word){ .address = address };
	if (actions & RACES_LOADS && !sync_holds_any(self)) {
		if (is_news(self, w->storer, w->store_epoch)) {
			learn_is(pc, RACES_ACQUIRE);
			learn_is(w->store, RACES_RELEASE);
		}
		w->load = pc;
		w->load_epoch = self->epoch;
		w->loader = racer_number(self) + 1;
	}
	if (actions & RACES_STORES) {
		if (is_news(self, w->loader, w->load_epoch)) {
			learn_is(pc, RACES_RELEASE);
			learn_is(w->load, RACES_ACQUIRE);
		}
		w->store = pc;
		w->store_epoch = self->epoch;
		w->storer = racer_number(self) + 1;
	}
}

void learn_access(struct racer *self, unsigned actions, const void *p, uint64_t size, uintptr_t pc)
{
	enum { LARGEST = 64 }; /* nobody publishes with a copy */
	uint64_t address = (uintptr_t)p & -(uint64_t)WORD;

	learn_is(pc, in_window(p) ? RACES_PM | RACES_EXECUTED : RACES_EXECUTED);
	/* Loads of its own stack are not watched: somebody may wait there. */
	if (actions & RACES_STORES && racer_is_others(self, p))
		learn_is(pc, RACES_RELEASE);
	if (sync_is_lock(p))
		learn_is(pc, RACES_LOCK);
	for (; size <= LARGEST && address < (uintptr_t)p + size; address += WORD)
		learn_word(self, actions, address, pc);
}
