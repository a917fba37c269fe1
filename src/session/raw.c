/* SPDX-License-Identifier: BSD-3-Clause */
#include "session/raw.h"

#include <stdbool.h>

#include "model/spin.h"

raw_new_function *raw_on_new;
raw_known_function *raw_on_known;

static uint32_t hash_key(uint32_t kind, uint32_t stack, uint32_t other)
{
	uint64_t hash = ((uint64_t)stack << 32 | other) * 0x9e3779b97f4a7c15ull;

	hash ^= hash >> 29;
	return (hash + kind) * 0xbf58476d1ce4e5b9ull >> 40;
}

static void count_again(struct raw_finding *known, const struct raw_finding *finding)
{
	uint64_t known_end = known->address + known->size;

	if (!finding->event || finding->event != known->event) {
		known->count++;
		known->event = finding->event;
		return;
	}
	/* The next line of the same store: still the first occurrence if it touches it. */
	if (known->count == 1 && finding->address + finding->size > known_end)
		known->size = finding->address + finding->size - known->address;
}

static uint32_t *find_slot(struct raw_table *table, const struct raw_finding *finding)
{
	uint32_t at =
		hash_key(finding->kind + (finding->custom << 8), finding->stack, finding->other);

	for (;; at++) {
		uint32_t *slot = &table->slot[at % RAW_SLOTS];
		const struct raw_finding *entry = &table->entry[*slot];

		if (!*slot || (entry->kind == finding->kind && entry->stack == finding->stack &&
			       entry->other == finding->other && entry->custom == finding->custom))
			return slot;
	}
}

uint32_t raw_add(struct raw_table *table, const struct raw_finding *finding, uint32_t owner)
{
	bool locked = spin_lock(&table->lock, owner);
	uint32_t *slot = find_slot(table, finding), entry;

	if (*slot) {
		if (!raw_on_known || raw_on_known(&table->entry[*slot]))
			count_again(&table->entry[*slot], finding);
	} else if (table->used[finding->kind] < RAW_PER_KIND) {
		*slot = ++table->entries;
		table->used[finding->kind]++;
		table->last[finding->kind] = *slot;
		table->entry[*slot] = *finding;
		table->entry[*slot].count = 1;
		if (raw_on_new)
			raw_on_new(&table->entry[*slot]);
	} else {
		/* The kind has used up its share: its last entry takes all further stacks. */
		table->entry[table->last[finding->kind]].folded = 1;
		table->entry[table->last[finding->kind]].count++;
	}
	entry = *slot;
	if (locked)
		spin_unlock(&table->lock);
	return entry;
}
