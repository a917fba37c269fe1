/* SPDX-License-Identifier: BSD-3-Clause */
/* Plug-in oracles (perdure/oracle.h): loading them, and being their host. */
#ifndef DRIVE_PLUGINS_H
#define DRIVE_PLUGINS_H

#include <stddef.h>

#include "perdure/oracle.h"
#include "report/finding.h"
#include "session/session.h"

enum { PLUGINS = RESULT_ORACLES };

/* Loads a plug-in. Returns 0, or -1 with the reason in `error`. */
int plugins_load(const char *path, char *error, size_t size);

/* What plug-ins say of themselves, for the report. */
void plugins_describe(struct result *result);

/* In the process that listens: starts them, hands each event to all of them, ends them. */
bool plugins_start(struct session *session);
void plugins_event(const struct perdure_event *event);
void plugins_finish(void);
/* Which of them was at work when the process ended; null if none. */
const char *plugins_at_work(const struct session *session);

/* An input that shows what a plug-in has just been told that may be; index + 1, or 0. */
uint32_t plugins_witness(void);

#endif
