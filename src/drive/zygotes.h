/* SPDX-License-Identifier: BSD-3-Clause */
/* A command as zygotes, from which executions are forked; see session/zygote.h. */
#ifndef DRIVE_ZYGOTES_H
#define DRIVE_ZYGOTES_H

#include <stdbool.h>

#include "session/zygote.h"

struct zygote {
	int channel;
	int pid;
	bool instrumented;
};

/*
 * Starts the command as this many zygotes. False after a message. target_prepare was called
 * before.
 */
bool zygotes_start(char **command, struct zygote *zygote, unsigned count);

/* Sends a word. False if the zygote is gone. */
bool zygote_say(const struct zygote *zygote, enum zygote_word word, unsigned execution);

/* The next word, if there is one; waits at most `milliseconds`. 1, 0 for none, -1 if it is gone. */
int zygote_hear(const struct zygote *zygote, struct zygote_message *message, int milliseconds);

/* Ends all of them, and all below them. */
void zygotes_end(void);

#endif
