/* SPDX-License-Identifier: BSD-3-Clause */
/* One program several times: each time with the same input, and the same PM files. */
#ifndef DRIVE_RERUN_H
#define DRIVE_RERUN_H

#include <stdbool.h>

#include "drive/driver.h"
#include "drive/input.h"
#include "drive/target.h"
#include "session/session.h"

struct rerun {
	struct session *session;
	char **command;
	const char *drive; /* --drive, or null */
	struct target_limits limits;
	unsigned runs;         /* so far */
	double first_cpu_time; /* seconds that the first of them has taken */
	struct driver driver;
	struct input recorded; /* what the first one is given, which the others get, too */
	int input;
	int nowhere; /* where output goes that nobody shall see */
	/* A line on the terminal. */
	bool progress, shown;
	unsigned planned; /* runs */
	double started, last;
};

/* Makes a place for copies of files. False after a message. */
bool rerun_start(struct rerun *rerun);
/* Runs it once; `shown` is whether its output is. False after a message if it could not be. */
bool rerun_once(struct rerun *rerun, bool shown, bool last, struct target_end *end);
void rerun_finish(struct rerun *rerun);

#endif
