/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of source code that cure findings, in the style that the file has already. */
#ifndef REPORT_REPAIR_H
#define REPORT_REPAIR_H

#include <stdbool.h>
#include <stdio.h>

struct repair_file; /* lines of a source file, as they are and as they shall be */

/* Null with errno if it cannot be read. */
struct repair_file *repair_open(const char *path);

/*
 * what: persist, fence, log or atomic, at a line of the file as it was. `lvalue` is what was stored
 * to, or null: then the line itself tells. Null if it was done; otherwise why it could not be.
 */
const char *repair_edit(struct repair_file *file, const char *what, unsigned line,
			const char *lvalue, unsigned long size);

/* As `diff -u` would show it. False if there is no difference. */
bool repair_diff(const struct repair_file *file, FILE *out);
/* False with errno. */
bool repair_save(const struct repair_file *file);
/* Back to what it was. */
bool repair_undo(const struct repair_file *file);

#endif
