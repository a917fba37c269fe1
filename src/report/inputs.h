/* SPDX-License-Identifier: BSD-3-Clause */
/* Inputs that perdure explore has found, for reports, and as files that perdure replay reads. */
#ifndef REPORT_INPUTS_H
#define REPORT_INPUTS_H

#include <jansson.h>
#include <stdio.h>

#include "report/finding.h"

/* Where inputs are kept, if nobody says anything else. */
#define INPUTS_DIRECTORY "perdure-inputs"

/* One line: argument 1 "ab", standard input "\x00…" */
void inputs_print(FILE *out, const struct explore_kept *input);
json_t *hex_json(const uint8_t *bytes, uint32_t count);
/* The bytes of a text of such an input, allocated, with a zero behind them. */
char *inputs_unhex(const char *text, size_t *size);
json_t *inputs_json(const struct explore_kept *input);
/* Paths that were ended by a signal. */
void inputs_print_crashes(FILE *out, const struct result *result);
json_t *inputs_crashes_json(const struct result *result);
/* What was not explored, and why, as limits. */
void inputs_note_limits(struct result *result);
/* All paths were taken, and nothing was fixed on the way. */
bool inputs_lost_nothing(const struct explore_counts *counts);

/*
 * Writes a file for a finding: the input, the words of a `perdure run` that shows it again, and
 * where it was. False with errno set if that cannot be.
 */
bool inputs_save(const struct finding *f, const struct result *result, const char *path,
		 char *const *options, char *const *crash_options);

#endif
