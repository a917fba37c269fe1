/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --drive: a client for a target that is a server. It starts when the target listens, and when it
 * has ended, the target is told to end.
 */
#ifndef DRIVE_DRIVER_H
#define DRIVE_DRIVER_H

#include "drive/target.h"
#include "session/session.h"

struct driver {
	const char *command; /* null: the target needs none */
	int pid;
	bool started, done, stopped;
	double stopped_at;
	int status; /* of the client, as from wait */
};

void driver_start(struct driver *driver, const char *command);
/* To be called again and again while the target, which has this process number, runs. */
void driver_tick(struct driver *driver, bool listens, bool quiet, int target);
bool driver_is_busy(const struct driver *driver);
void driver_end(struct driver *driver);

/* Runs a command that target_prepare has made ready, with a client. False: not done, or in vain. */
bool driver_run(struct driver *driver, char **command, const struct session *session,
		const struct target_limits *limits, struct target_end *end);

/* A client that did not do its work has tested nothing: false after a message. */
bool driver_did_its_work(const struct driver *driver);

#endif
