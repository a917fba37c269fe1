/* SPDX-License-Identifier: BSD-3-Clause */
/* Small things that all writers of JSON, and of other text, need. */
#ifndef REPORT_JSON_TEXT_H
#define REPORT_JSON_TEXT_H

#include <jansson.h>

/* A copy in which bytes that are no UTF-8 have become U+FFFD: names may hold anything. Free it. */
char *utf8_repaired(const char *text);

/* A JSON string; null for a null pointer. */
json_t *json_text(const char *text);

/*
 * Writes a value to a file ("-" is standard output) and gives up its reference. Returns 0, or -1
 * with errno set.
 */
int json_write_file(const char *path, json_t *value);

#endif
