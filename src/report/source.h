/* SPDX-License-Identifier: BSD-3-Clause */
/* Source files: lines for excerpts, and what a store's line says about its target. */
#ifndef REPORT_SOURCE_H
#define REPORT_SOURCE_H

#include <stdbool.h>

/* A line without its end, numbered from 1; null if there is none. Valid until the process ends. */
const char *source_line(const char *path, unsigned line);

/*
 * The lvalue that the store at line and column writes, as the source spells it: the left side of
 * an assignment, the operand of ++, the first argument of a call. Null if it is not certain.
 * Allocated.
 */
char *source_target(const char *path, unsigned line, unsigned column);

/* Can it be part of a name? */
bool source_is_name(char c);

/* The line with every run of blanks made one: what a fingerprint is made of. Allocated. */
char *source_normal(const char *path, unsigned line);

#endif
