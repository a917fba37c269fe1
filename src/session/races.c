/* SPDX-License-Identifier: BSD-3-Clause */
#include "session/session.h"

uint64_t races_key(const struct session_module *module, uint64_t address)
{
	uint64_t hash = 0xcbf29ce484222325ull;

	for (const char *c = module ? module->path : ""; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 0x100000001b3ull;
	hash = (hash ^ (address - (module ? module->start : 0))) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 29 ? hash ^ hash >> 29 : 1;
}

struct races_instruction *races_instruction(struct session_races *races, uint64_t key, bool make)
{
	for (uint64_t at = key;; at++) {
		struct races_instruction *entry = &races->instruction[at % RACES_LEARNED];
		uint64_t seen = __atomic_load_n(&entry->key, __ATOMIC_ACQUIRE);

		if (seen == key)
			return entry;
		if (seen)
			continue;
		if (!make || races->learned > RACES_LEARNED / 4 * 3)
			return NULL;
		if (__atomic_compare_exchange_n(&entry->key, &seen, key, false, __ATOMIC_ACQ_REL,
						__ATOMIC_ACQUIRE)) {
			__atomic_fetch_add(&races->learned, 1, __ATOMIC_RELAXED);
			return entry;
		}
		at--; /* somebody was faster: perhaps with the same key */
	}
}

bool races_is_of_lock(const struct races_instruction *entry)
{
	enum { HARDLY_EVER = 16 };

	return entry->alone >= RACES_OFTEN && entry->disturbed * HARDLY_EVER < entry->alone;
}

/*
 * Stacks name what is behind an instruction, which is what the compiler's hooks are called by, too;
 * patched ones are called by where they start: the nearest one before is it.
 */
static bool is_of_lock(struct session *session, uint32_t stack)
{
	enum { LONGEST = 15 };
	uint32_t depth, image;
	const uint64_t *frame = stacks_get(&session->stacks, stack, &depth, &image);
	const struct session_module *module = session_module_at(session, image, frame[0]);
	const struct races_instruction *entry = NULL;
	bool named = module && !module->patched;

	for (unsigned back = !named; back <= (named ? 0 : LONGEST) && !entry; back++)
		entry = races_instruction(&session->races, races_key(module, frame[0] - back),
					  false);
	return entry && races_is_of_lock(entry);
}

void races_drop_locks(struct session *session)
{
	for (uint32_t i = 1; i <= session->raw.entries; i++) {
		struct raw_finding *entry = &session->raw.entry[i];

		if (entry->kind == KIND_THREAD_RACE && is_of_lock(session, entry->other))
			entry->count = 0;
	}
}
