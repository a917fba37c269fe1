/* SPDX-License-Identifier: BSD-3-Clause */
/* The event trace as text: one line an event, with its place in the source. */
#ifndef REPORT_TRACE_H
#define REPORT_TRACE_H

#include "session/session.h"

/* Returns 0, or -1 with errno set. */
int trace_to_text(const char *records, const char *text, struct session *session);

#endif
