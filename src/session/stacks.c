/* SPDX-License-Identifier: BSD-3-Clause */
#include "session/stacks.h"

#include "model/mix.h"

enum { HEADER_WORDS = 2, PROBES = 64 };

/* Two frames a multiplication: this is on the path of every event. */
static uint64_t hash_frames(uint32_t image, const uintptr_t *frames, uint32_t depth)
{
	uint64_t hash = 0x9e3779b97f4a7c15ull * (image + 1) + depth;
	uint32_t i = 0;

	for (; i + 1 < depth; i += 2)
		hash = mix(frames[i] ^ 0xff51afd7ed558ccdull, frames[i + 1] ^ hash);
	if (i < depth)
		hash = mix(frames[i] ^ 0xc4ceb9fe1a85ec53ull, hash);
	hash = mix(hash, 0xbf58476d1ce4e5b9ull);
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
			    const uintptr_t *frames, uint32_t depth, bool *added)
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
				*added = true;
				return fresh;
			}
		}
		if (stacks->word[seen] == hash)
			return seen;
	}
	return 0;
}

uint32_t stacks_add(struct stacks *stacks, struct stacks_cache *cache, uint32_t image,
		    const uintptr_t *frames, uint32_t depth, bool *added)
{
	uint64_t hash = hash_frames(image, frames, depth);
	uint32_t number, at = hash % STACKS_CACHED;

	*added = false;
	if (cache->entry[at].hash == hash)
		return cache->entry[at].number;
	number = find_or_add(stacks, hash, image, frames, depth, added);
	if (!number && depth > 1) {
		/* No room for another path: the place itself is still worth knowing. */
		__atomic_fetch_add(&stacks->full, 1, __ATOMIC_RELAXED);
		number =
			find_or_add(stacks, hash_frames(image, frames, 1), image, frames, 1, added);
	}
	cache->entry[at].hash = hash;
	cache->entry[at].number = number;
	return number;
}

uint32_t stacks_find(struct stacks *stacks, struct stacks_cache *cache, uint32_t image,
		     const uintptr_t *frames, uint32_t depth)
{
	uint64_t hash = hash_frames(image, frames, depth);
	uint32_t at = hash % STACKS_CACHED;

	if (cache->entry[at].hash == hash)
		return cache->entry[at].number;
	for (uint32_t probe = 0; probe < PROBES; probe++) {
		uint32_t seen = __atomic_load_n(&stacks->slot[(hash + probe) % STACKS_SLOTS],
						__ATOMIC_ACQUIRE);

		if (!seen)
			return 0;
		if (stacks->word[seen] != hash)
			continue;
		cache->entry[at].hash = hash;
		cache->entry[at].number = seen;
		return seen;
	}
	return 0;
}

const uint64_t *stacks_get(const struct stacks *stacks, uint32_t number, uint32_t *depth,
			   uint32_t *image)
{
	*depth = (uint32_t)stacks->word[number + 1];
	*image = stacks->word[number + 1] >> 32;
	return &stacks->word[number + HEADER_WORDS];
}
