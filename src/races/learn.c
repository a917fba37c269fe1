/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first run: which instructions touch PM, and which of them (or of those that touch ordinary
 * memory) are synchronisation. A word that one thread stores and another one loads without a lock,
 * and nothing orders the two, is: lock-free code publishes so. The word of a lock that is freed by
 * a plain store is, too.
 */
#include "binary/binary.h"
#include "model/mix.h"
#include "races/brief.h"
#include "races/learn.h"

enum { CACHED = 1 << 12 };

struct learn_word *learn_words;

/*
 * Before there are threads, all that can be learnt of an instruction is what it touches, and that
 * is soon known: by site, how often it is still looked at.
 */
enum { WANTED = 64 };
static uint8_t *wanted;

void learn_start(void)
{
	learn_words = binary_dense_room(LEARN_WORDS * sizeof(*learn_words));
	wanted = binary_room(BINARY_SITES_MAX);
	runtime_races &= learn_words && wanted;
	brief_start();
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

static uint8_t kind_of(uint64_t address)
{
	uint8_t kind = racer_is_others(NULL, (void *)address) ? LEARN_OWNED : LEARN_PLAIN;

	for (uint64_t p = address; p < address + LEARN_WORD; p++) {
		if (sync_is_lock((void *)p))
			return LEARN_LOCK;
		if (sync_is_locked_word((void *)p))
			kind = LEARN_LOCKED;
	}
	return kind;
}

void learn_note_word(const void *p, bool is_lock)
{
	uint64_t address = (uintptr_t)p & -(uint64_t)LEARN_WORD;
	struct learn_word *w = learn_word_at(address);
	uint8_t kind = is_lock ? LEARN_LOCK : LEARN_LOCKED;

	if (w->address == address && w->kind < kind)
		w->kind = kind;
}

void learn_forget(const void *p, uint64_t size)
{
	uint64_t start = (uintptr_t)p, end = start + size;

	for (uint64_t at = start & -(uint64_t)LEARN_WORD; at < end; at += LEARN_WORD)
		if (learn_word_at(at)->address == at)
			*learn_word_at(at) = (struct learn_word){ 0 };
	sync_forget(p, size);
}

static void learn_word(struct racer *self, unsigned actions, uint64_t address, uintptr_t pc)
{
	struct learn_word *w = learn_word_at(address);

	if (w->address != address)
		*w = (struct learn_word){ .address = address, .kind = kind_of(address) };
	if (actions & RACES_LOADS && !sync_holds_any(self)) {
		bool news = learn_is_news(self, w->store, w->store_epoch);

		learn_note_load(w, self, pc);
		if (news) {
			learn_is(pc, RACES_ACQUIRE);
			learn_is(w->store.pc, RACES_RELEASE);
			w->releases = w->acquires = true;
		}
	}
	if (actions & RACES_STORES) {
		bool news = learn_is_news(self, w->load, w->load_epoch);

		learn_note_store(w, self, pc);
		if (news) {
			learn_is(pc, RACES_RELEASE);
			learn_is(w->load.pc, RACES_ACQUIRE);
			w->releases = w->acquires = true;
		}
	}
}

void learn_access(struct racer *self, unsigned actions, const void *p, uint64_t size, uintptr_t pc)
{
	enum { LARGEST = 64 }; /* nobody publishes with a copy */
	uint64_t address = (uintptr_t)p & -(uint64_t)LEARN_WORD;

	learn_is(pc, in_window(p) ? RACES_PM | RACES_EXECUTED : RACES_EXECUTED);
	/* Loads of its own stack are not watched: somebody may wait there. */
	if (actions & RACES_STORES && racer_is_others(self, p))
		learn_is(pc, RACES_RELEASE);
	if (sync_is_lock(p))
		learn_is(pc, RACES_LOCK);
	for (; size <= LARGEST && address < (uintptr_t)p + size; address += LEARN_WORD)
		learn_word(self, actions, address, pc);
}
