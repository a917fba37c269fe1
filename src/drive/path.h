/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The recovery that a worker met last, as a way through the memo. At the next crash most of what it
 * reads is still the same: only reads of lines that have changed since are looked at, and the way
 * is followed anew from the first one that gives another value.
 */
#ifndef DRIVE_PATH_H
#define DRIVE_PATH_H

#include "drive/memo.h"

enum { PATH_CHANGES_MAX = 4096 };

/* Not a part + 1 of the history: not looked for yet, nobody, several. */
enum { PATH_WRITER_UNKNOWN = 0, PATH_WRITER_NONE = UINT32_MAX - 1, PATH_WRITER_MANY };

struct path_step {
	struct read_record read;
	uint32_t node;
	uint32_t before; /* position + 1 of the read of the same line before this one */
	uint32_t writer; /* who stored it, if it is certain: see above */
};

struct path_line {
	uint64_t line;
	uint32_t last;
};

struct path {
	bool known; /* it leads to an outcome */
	uint32_t length;
	struct path_step *step;
	uint32_t room;
	const struct outcome *outcome;
	bool read_something; /* of what was stored before the crash */
	/* Line to its last position + 1. */
	struct path_line *line;
	uint32_t lines_mask, lines_used;
	/* Lines that may have changed since the path was followed. */
	uint64_t *changed;
	uint32_t changes, changes_room;
	uint32_t *position; /* room for path_positions */
	uint32_t positions_room;
};

void path_free(struct path *path);

/* Drops all steps from this position on. */
void path_cut(struct path *path, uint32_t length);
void path_add(struct path *path, const struct read_record *read, uint32_t node);

/* A line may not be what it was. */
void path_changed(struct path *path, uint64_t line);

/*
 * The positions at which one of these lines, or something outside of memory, is read, in ascending
 * order.
 */
uint32_t path_positions(struct path *path, const uint64_t *line, uint32_t lines,
			const uint32_t **position);

#endif
