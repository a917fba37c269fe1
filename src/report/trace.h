/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of `--trace`. */
#ifndef REPORT_TRACE_H
#define REPORT_TRACE_H

#include <stdio.h>

#include "session/session.h"

void trace_print(FILE *out, const struct perdure_event *event, const struct session *session);

#endif
