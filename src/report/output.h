/* SPDX-License-Identifier: BSD-3-Clause */
/* What all report writers need: files, and text that may hold anything. */
#ifndef REPORT_OUTPUT_H
#define REPORT_OUTPUT_H

#include <jansson.h>
#include <stdio.h>

/* A copy in which bytes that are no UTF-8 have become U+FFFD: names may hold anything. Free it. */
char *utf8_repaired(const char *text);

/* A JSON string; null for a null pointer. */
json_t *json_text(const char *text);

/* A list of texts that ends with null. */
json_t *words_json(char *const *words);

/* Opens a file to write; "-" is standard output. Null with errno set if that fails. */
FILE *output_open(const char *path);
/* Closes it. Returns `status`, or -1 with errno set if not everything could be written. */
int output_close(FILE *out, int status);

/*
 * Writes a value to a file ("-" is standard output) and gives up its reference. Returns 0, or -1
 * with errno set.
 */
int json_write_file(const char *path, json_t *value);

#endif
