/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs perdure-steer on the program, for `perdure explore`. */
#ifndef DRIVE_STEER_H
#define DRIVE_STEER_H

#include "session/session.h"

/* A source line that changes PM, by the static analysis. */
struct steer_place {
	char *file; /* as the compiler was given it */
	unsigned line, column;
};

struct steer {
	struct steer_place *place;
	size_t places;
};

/* The program's objects are loaded: finds weights for its branches, and lets it go on. */
void steer_find(struct steer *steer, struct session *session);
/* How many of the places have been executed. */
size_t steer_reached(const struct steer *steer, struct session *session);

#endif
