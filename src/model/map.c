/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/map.h"

#include <stdlib.h>

#include "model/mix.h"

static struct map_slot *find(const struct map *map, uint64_t key)
{
	size_t at = spread(key);

	for (;; at++) {
		struct map_slot *slot = &map->slot[at & (map->room - 1)];

		if (!slot->value || slot->key == key)
			return slot;
	}
}

static void grow(struct map *map)
{
	struct map bigger = { .used = map->used, .room = map->room ? map->room * 2 : 64 };

	bigger.slot = calloc(bigger.room, sizeof(*bigger.slot));
	if (!bigger.slot)
		abort();
	for (size_t i = 0; i < map->room; i++)
		if (map->slot[i].value)
			*find(&bigger, map->slot[i].key) = map->slot[i];
	free(map->slot);
	*map = bigger;
}

size_t map_get_or_put(struct map *map, uint64_t key, size_t value)
{
	struct map_slot *slot;

	if (map->used * 2 >= map->room)
		grow(map);
	slot = find(map, key);
	if (!slot->value) {
		*slot = (struct map_slot){ key, value + 1 };
		map->used++;
	}
	return slot->value - 1;
}

size_t map_get(const struct map *map, uint64_t key, size_t otherwise)
{
	const struct map_slot *slot = map->room ? find(map, key) : NULL;

	return slot && slot->value ? slot->value - 1 : otherwise;
}

void map_free(struct map *map)
{
	free(map->slot);
	*map = (struct map){ 0 };
}
