/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inputs that an exploration has found, for crash injection: the program is run once with each of
 * them. Standard input and files come from the command, the rest is given by the runtime.
 */
#ifndef DRIVE_GIVEN_H
#define DRIVE_GIVEN_H

#include "drive/recoveries.h"
#include "drive/replaced.h"
#include "session/session.h"

struct given {
	struct explore_kept *list; /* null: the program has whatever it has */
	uint32_t count;
	int fd;           /* what the runtime reads them from */
	bool to_recovery; /* recoveries are the same program, and get the same */
	int input;        /* standard input of the current one; -1: the user's */
	struct recoveries recoveries;
	int recovery_input; /* the same of a recovery that has inputs of its own */
	struct replaced replaced;
};

/* Inputs that were written to a file one after the other. */
bool given_load(struct given *given, int fd);
/* Prepares a run with the input of this number; findings will have it. */
bool given_use(struct given *given, struct session *session, uint32_t number);
/* The same for recoveries. */
bool given_use_recovery(struct given *given, struct session *session, uint32_t number);
void given_end(struct given *given);

#endif
