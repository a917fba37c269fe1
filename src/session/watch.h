/* SPDX-License-Identifier: BSD-3-Clause */
/* What a watched program and its watcher say to each other at the end. */
#ifndef SESSION_WATCH_H
#define SESSION_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct watch_request {
	int32_t status; /* the program is about to exit with it */
};

struct watch_answer {
	bool override_status; /* --error-exitcode, and something was found */
	int32_t status;
};

/* The watcher's answer in place of a session's path: PERDURE_OPTIONS makes no sense. */
#define WATCH_BAD_OPTIONS "bad options"

#endif
