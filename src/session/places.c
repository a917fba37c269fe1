/* SPDX-License-Identifier: BSD-3-Clause */
#include "session/places.h"

#include <string.h>

#include "model/spin.h"

static uint32_t intern(struct places *places, const char *text, size_t size, uint32_t owner)
{
	bool locked = spin_lock(&places->lock, owner);
	uint32_t number;

	for (number = 1; number <= places->used; number++)
		if (memcmp(places->place[number], text, size) == 0)
			break;
	if (number == PLACES) {
		number = 0;
	} else if (number > places->used) {
		memcpy(places->place[number], text, size);
		places->used = number;
	}
	if (locked)
		spin_unlock(&places->lock);
	return number;
}

uint32_t places_intern(struct places *places, const char *place, uint32_t owner)
{
	const char *end = place;

	while (*place_type(end))
		end = place_next(end);
	end += 5; /* the empty one */
	return end - place <= PLACES_SIZE ? intern(places, place, end - place, owner) : 0;
}

uint32_t places_intern_level(struct places *places, const char *level, uint32_t owner)
{
	char text[PLACES_SIZE] = { 0 };
	size_t size = place_next(level) - level;

	if (size + 5 > PLACES_SIZE)
		return 0;
	memcpy(text, level, size);
	return intern(places, text, size + 5, owner);
}
