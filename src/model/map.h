/* SPDX-License-Identifier: BSD-3-Clause */
/* A hash map from 64-bit keys (themselves hashes, or spread first) to sizes. */
#ifndef MODEL_MAP_H
#define MODEL_MAP_H

#include <stddef.h>
#include <stdint.h>

struct map_slot {
	uint64_t key;
	size_t value; /* value + 1; 0 is a free slot */
};

struct map {
	struct map_slot *slot;
	size_t used, room; /* room is a power of two, or 0 */
};

/* The value of the key; if it has none, `value` becomes it, and is returned. */
size_t map_get_or_put(struct map *map, uint64_t key, size_t value);
/* The value of the key, or `otherwise`. */
size_t map_get(const struct map *map, uint64_t key, size_t otherwise);
void map_free(struct map *map);

#endif
