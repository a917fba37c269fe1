/* SPDX-License-Identifier: BSD-3-Clause */
/* What a path has done to PM: which instructions, for coverage, and all of it as one number. */
#include "model/mix.h"
#include "model/spin.h"
#include "symbolic/symbolic.h"

static uint64_t history; /* a hash of what this path has done to PM */

void reached_memory(const void *p, uintptr_t pc)
{
	history = explore_mix(history * 31 + (uintptr_t)p) + explore_mix(pc);
}

/* True if no other path has done the same; half of the table stays free. */
bool reached_something_new(void)
{
	struct explore *explore = symbolic_shared();
	uint64_t hash = history | 1, at = hash >> 1;
	bool locked = spin_lock(&explore->lock, thread_owner()), is_new = false;

	while (explore->history[at % EXPLORE_HISTORIES] &&
	       explore->history[at % EXPLORE_HISTORIES] != hash)
		at++;
	if (!explore->history[at % EXPLORE_HISTORIES] &&
	    explore->histories < EXPLORE_HISTORIES / 2) {
		explore->history[at % EXPLORE_HISTORIES] = hash;
		explore->histories++;
		is_new = true;
	}
	if (locked)
		spin_unlock(&explore->lock);
	return is_new;
}

void reached_place(uintptr_t pc)
{
	uint64_t *place = symbolic_shared()->place;
	uint32_t at = spread(pc);

	for (unsigned tries = 0; tries < 64; tries++, at++) {
		uint64_t *slot = &place[at % EXPLORE_PLACES];

		if (*slot == pc)
			return;
		if (!*slot) {
			*slot = pc;
			symbolic_shared()->places++;
			return;
		}
	}
}
