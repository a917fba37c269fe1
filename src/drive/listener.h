/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who listens to the target's events: the trace and plug-ins, in a process of their own, so that a
 * plug-in that crashes takes nothing else with it.
 */
#ifndef DRIVE_LISTENER_H
#define DRIVE_LISTENER_H

#include <stdbool.h>

#include "session/session.h"

/*
 * Starts listening, if there is a trace to write (a path, "-" for standard output) or a plug-in.
 * False with a message on standard error if that is impossible.
 */
bool listener_start(struct session *session, const char *trace, bool plugins);

enum listener_end {
	LISTENER_HEARD_ALL, /* or nobody listened */
	LISTENER_NO_TRACE,  /* the trace could not be written */
	LISTENER_CRASHED,   /* plug-ins did not hear all events; the session's limits say why */
};

/* The target is gone: waits until all events are heard, at most so many seconds; 0: any time. */
enum listener_end listener_finish(struct session *session, double seconds);

#endif
