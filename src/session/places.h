/* SPDX-License-Identifier: BSD-3-Clause */
/* Which structure, and where in it: what perdure-cc knows of a store. Each kept once, by number. */
#ifndef SESSION_PLACES_H
#define SESSION_PLACES_H

#include <stdint.h>

enum { PLACES = 1 << 14, PLACES_NAME = 120 };

struct place {
	uint32_t hash, offset;
	char type[PLACES_NAME]; /* as in "struct node" */
};

struct places {
	uint32_t lock, used; /* number 0 is never used */
	struct place place[PLACES];
};

/* The number of a place; 0 if there is no room. Owner as in spin.h. */
uint32_t places_intern(struct places *places, uint32_t offset, const char *type, uint32_t owner);

#endif
