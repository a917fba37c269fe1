/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs perdure-steer on the program, for `perdure explore`. */
#ifndef DRIVE_STEER_H
#define DRIVE_STEER_H

#include "report/coverage.h"
#include "session/session.h"

/* Places of the program that change PM, by the static analysis. */
struct steer {
	struct coverage coverage;
};

/* The program's objects are loaded: finds weights for its branches, and lets it go on. */
void steer_find(struct steer *steer, struct session *session);
/* Finds out which of the places have been executed, and what kept it from the others; how many. */
size_t steer_reached(struct steer *steer, struct session *session);

#endif
