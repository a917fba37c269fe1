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

/* The target is gone: waits until all events are heard. False if the trace could not be written. */
bool listener_finish(struct session *session);

#endif
