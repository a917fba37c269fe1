/* SPDX-License-Identifier: BSD-3-Clause */
/* Checkers turn what the model hears into raw findings. One file a checker. */
#ifndef CHECKERS_CHECKERS_H
#define CHECKERS_CHECKERS_H

#include "session/session.h"

/* Lets the checkers listen to the session's model in this process. */
void checkers_start(struct session *session);

/* For checkers: counts an occurrence if its kind is wanted. */
void checkers_report(const struct raw_finding *finding, uint32_t owner);

extern const struct lines_listener pattern_checker;

#endif
