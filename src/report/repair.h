/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of source code that cure findings, in the style that the file has already. */
#ifndef REPORT_REPAIR_H
#define REPORT_REPAIR_H

#include <stdbool.h>
#include <stdio.h>

struct repair_file; /* lines of a source file, as they are and as they shall be */

/* Null with errno if it cannot be read. */
struct repair_file *repair_open(const char *path);

struct repair_wish {
	const char *what; /* persist, fence, log, atomic */
	unsigned line;
	const char *text;   /* that the line must have; or null */
	const char *lvalue; /* what is stored to, or null: the line itself tells */
	unsigned long size;
};

/* Null if it was done, or needs nothing any more; otherwise why it could not be. */
const char *repair_edit(struct repair_file *file, const struct repair_wish *wish);

/* As `diff -u` would show it, with this name. False if there is no difference. */
bool repair_diff(const struct repair_file *file, const char *name, FILE *out);
/* False with errno. */
bool repair_save(const struct repair_file *file);
/* Back to what it was. */
bool repair_undo(const struct repair_file *file);

#endif
