/* SPDX-License-Identifier: BSD-3-Clause */
#include "session/places.h"

#include <stdbool.h>
#include <string.h>

#include "model/spin.h"

static uint32_t hash_place(uint32_t offset, const char *type)
{
	uint32_t hash = 5381 + offset;

	for (; *type; type++)
		hash = hash * 33 + (unsigned char)*type;
	return hash;
}

uint32_t places_intern(struct places *places, uint32_t offset, const char *type, uint32_t owner)
{
	uint32_t hash = hash_place(offset, type), number;
	bool locked = spin_lock(&places->lock, owner);

	for (number = 1; number <= places->used; number++) {
		const struct place *place = &places->place[number];

		if (place->hash == hash && place->offset == offset &&
		    strncmp(place->type, type, PLACES_NAME - 1) == 0)
			break;
	}
	if (number > places->used) {
		if (number < PLACES) {
			places->place[number].hash = hash;
			places->place[number].offset = offset;
			strncpy(places->place[number].type, type, PLACES_NAME - 1);
			places->used = number;
		} else {
			number = 0;
		}
	}
	if (locked)
		spin_unlock(&places->lock);
	return number;
}
