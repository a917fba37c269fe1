/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads library models from text. The format is described in docs/models.md. */
#ifndef LIBRARY_PARSE_H
#define LIBRARY_PARSE_H

#include <stddef.h>

#include "library/library.h"

/* Makes an empty table. */
void library_table_init(struct library_table *table);

/* What is in the table now comes with Perdure. */
void library_mark_shipped(struct library_table *table);

/*
 * Adds what a file says; a function that is already there is replaced. Returns 0, or -1 with
 * "file:line: reason" in `error`; the table is then unfinished.
 */
int library_parse_file(struct library_table *table, const char *path, char *error, size_t size);

/* The same from memory; `name` stands for the file in messages. */
int library_parse_text(struct library_table *table, const char *name, const char *text, char *error,
		       size_t size);

#endif
