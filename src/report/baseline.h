/* SPDX-License-Identifier: BSD-3-Clause */
/* An earlier result: what was in it is known, and only what is new counts. */
#ifndef REPORT_BASELINE_H
#define REPORT_BASELINE_H

#include <stddef.h>

#include "report/finding.h"

/* Reads a JSON result. Returns 0, or -1 with the reason in `error`. */
int baseline_read(const char *path, char *error, size_t size);

/* Marks the findings whose causes are known. */
void baseline_apply(struct result *result);

#endif
