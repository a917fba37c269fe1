/* SPDX-License-Identifier: BSD-3-Clause */
/* The analysis that a JSON result is of, once more: for replays, images, and fixes that are tried.
 */
#ifndef CLI_AGAIN_H
#define CLI_AGAIN_H

#include <jansson.h>
#include <stdbool.h>

enum { AGAIN_WORDS = 512 };

struct again {
	char *word[AGAIN_WORDS + 1]; /* of a command line, null at the end; not copied */
	unsigned words;
	char event[32];
};

void again_add(struct again *again, const char *word);
/* Texts of a list. */
void again_add_all(struct again *again, const json_t *list);

/* "perdure ENGINE options", with the schedule and the crash of a finding, if there is one. */
void again_begin(struct again *again, const json_t *result, const json_t *finding);
/* "-- PROG ARGS" */
void again_end(struct again *again, const json_t *result);

/* What the program was given as standard input, to be read from the start; nothing if it is not
 * known. */
int again_input(const json_t *result);

/*
 * Runs it in a process of its own, which is ended if this one is told to end; `input` may be -1.
 * Its exit status, or -1.
 */
int again_run(const struct again *again, bool quiet, int input);

/* The text of a member; null if it is none. */
const char *again_text(const json_t *object, const char *key);

#endif
