/* SPDX-License-Identifier: BSD-3-Clause */
/* What happened to the cache lines that a finding is about, up to its crash. */
#ifndef REPORT_TIMELINE_H
#define REPORT_TIMELINE_H

#include <jansson.h>

#include "report/finding.h"

/* Null if nothing is known: only the last run before a crash is still there. */
json_t *timeline_json(const struct finding *finding, const struct result *result);

#endif
