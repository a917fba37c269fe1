/* SPDX-License-Identifier: BSD-3-Clause */
/* Report writers. They return 0, or -1 with errno set if the output could not be written. */
#ifndef REPORT_WRITE_H
#define REPORT_WRITE_H

#include <jansson.h>
#include <stdio.h>

#include "report/finding.h"

/* For people: one block a cause, worst first, and a summary line. */
int write_text(FILE *out, const struct result *result, bool colour);

/* For programs: version 1 of the JSON result. */
/* The whole result; what write_json writes. */
json_t *result_json(const struct result *result);
int write_json(const char *path, const struct result *result);

/* For code-scanning services: SARIF 2.1.0. */
int write_sarif(const char *path, const struct result *result);

/* For test dashboards: JUnit XML. */
int write_junit(const char *path, const struct result *result);

/* Counters, for --stats. */
int write_stats(FILE *out, const struct result *result);

#endif
