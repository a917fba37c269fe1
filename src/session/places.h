/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which structures, and where in them: what perdure-cc knows of a store, encoded as in
 * perdure/event.h. Each is kept once, by number.
 */
#ifndef SESSION_PLACES_H
#define SESSION_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PLACES = 1 << 14, PLACES_SIZE = 448 };

struct places {
	uint32_t lock, used; /* number 0 is never used */
	char place[PLACES][PLACES_SIZE];
};

/* The number of a place; 0 if there is no room. Owner as in spin.h. */
uint32_t places_intern(struct places *places, const char *place, uint32_t owner);

/* The same for one structure of it. */
uint32_t places_intern_level(struct places *places, const char *level, uint32_t owner);

/* ---- reading a place ---- */

static inline uint32_t place_offset(const char *level)
{
	uint32_t offset;

	__builtin_memcpy(&offset, level, sizeof(offset));
	return offset;
}

/* As in "struct node"; empty behind the last structure. */
static inline const char *place_type(const char *level)
{
	return level + sizeof(uint32_t);
}

/* Without "struct " in front. */
static inline const char *place_bare_type(const char *level)
{
	const char *type = place_type(level), *space = __builtin_strchr(type, ' ');

	return space ? space + 1 : type;
}

/* The next structure around it. */
static inline const char *place_next(const char *level)
{
	return place_type(level) + __builtin_strlen(place_type(level)) + 1;
}

#endif
