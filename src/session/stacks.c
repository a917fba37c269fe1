/* SPDX-License-Identifier: BSD-3-Clause */
#include "session/stacks.h"

enum { HEADER_WORDS = 2, PROBES = 64 };

static uint64_t hash_frames(uint32_t image, const uintptr_t *frames, uint32_t depth)
{
	uint64_t hash = 0x9e3779b97f4a7c15ull * (image + 1);

	for (uint32_t i = 0; i < depth; i++) {
		hash = (hash ^ frames[i]) * 0xff51afd7ed558ccdull;
		hash ^= hash >> 32;
	}
	return hash ? hash : 1;
}

/* Writes the stack to fresh words; 0 if there is no room. */
static uint32_t append(struct stacks *stacks, uint64_t hash, uint32_t image,
		       const uintptr_t *frames, uint32_t depth)
{
	uint32_t number =
		__atomic_fetch_add(&stacks->used, HEADER_WORDS + depth, __ATOMIC_RELAXED) + 1;

	if (number + HEADER_WORDS + depth >= STACKS_WORDS) {
		__atomic_fetch_sub(&stacks->used, HEADER_WORDS + depth, __ATOMIC_RELAXED);
		return 0;
	}
	stacks->word[number] = hash;
	stacks->word[number + 1] = (uint64_t)image << 32 | depth;
	for (uint32_t i = 0; i < depth; i++)
		stacks->word[number + HEADER_WORDS + i] = frames[i];
	return number;
}

/* Looks the hash up, and puts a new stack there if it is missing; 0 if the table is crowded. */
static uint32_t find_or_add(struct stacks *stacks, uint64_t hash, uint32_t image,
			    const uintptr_t *frames, uint32_t depth, int *added)
{
	uint32_t fresh = 0;

	for (uint32_t probe = 0; probe < PROBES; probe++) {
		uint32_t *slot = &stacks->slot[(hash + probe) % STACKS_SLOTS];
		uint32_t seen = __atomic_load_n(slot, __ATOMIC_ACQUIRE);

		if (!seen) {
			if (!fresh && !(fresh = append(stacks, hash, image, frames, depth)))
				return 0;
			if (__atomic_compare_exchange_n(slot, &seen, fresh, 0, __ATOMIC_RELEASE,
							__ATOMIC_ACQUIRE)) {
				*added = 1;
				return fresh;
			}
		}
		if (stacks->word[seen] == hash)
			return seen;
	}
	return 0;
}

uint32_t stacks_add(struct stacks *stacks, uint32_t image, const uintptr_t *frames, uint32_t depth,
		    int *added)
{
	uint32_t number;

	*added = 0;
	number =
		find_or_add(stacks, hash_frames(image, frames, depth), image, frames, depth, added);
	if (number || depth <= 1)
		return number;
	/* No room for another path: the place itself is still worth knowing. */
	__atomic_fetch_add(&stacks->full, 1, __ATOMIC_RELAXED);
	return find_or_add(stacks, hash_frames(image, frames, 1), image, frames, 1, added);
}

const uint64_t *stacks_get(const struct stacks *stacks, uint32_t number, uint32_t *depth,
			   uint32_t *image)
{
	*depth = (uint32_t)stacks->word[number + 1];
	*image = stacks->word[number + 1] >> 32;
	return &stacks->word[number + HEADER_WORDS];
}
