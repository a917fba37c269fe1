/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Suppressions: blocks of text that describe findings which are to be left out, written like
 * Valgrind's (docs/reports.md).
 */
#ifndef REPORT_SUPPRESS_H
#define REPORT_SUPPRESS_H

#include <stddef.h>
#include <stdio.h>

#include "report/finding.h"

/* Reads a file; blocks add up. Returns 0, or -1 with "file:line: reason" in `error`. */
int suppress_read(const char *path, char *error, size_t size);

/* Marks the findings that some block describes. */
void suppress_apply(struct result *result);

/* Says how many findings each block has left out: one that describes nothing may be out of date. */
void suppress_print_use(FILE *out);

/* Writes a block for each finding that counts; each describes exactly that one. */
int suppress_write(const char *path, const struct result *result);

#endif
