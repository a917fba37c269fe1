/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Crashes inside of recoveries: what a recovery has stored, and what another crash in the middle of
 * it can leave. A line then holds what the crash before has left, in any version that agrees with
 * what the recovery has read until then, with the first so many of the recovery's own stores on
 * top.
 */
#ifndef DRIVE_CHAIN_H
#define DRIVE_CHAIN_H

#include "drive/image.h"

/* What a recovery did, as far as another crash is concerned. */
struct leaf {
	struct leaf *next; /* all of them */
	struct read_record *read;
	uint32_t reads;
	uint32_t *reads_before; /* each event */
	struct history history;
	struct torn *torn; /* made when it is needed */
};

/* What a crash inside of a recovery leaves: lines with lists of contents. */
struct chain_state {
	struct chain_state *next;         /* all of a crash point's */
	const struct chain_state *before; /* what that recovery started from; null: the program */
	unsigned stage;                   /* of the recovery that comes next */
	struct leaf *leaf;                /* the one that has crashed */
	uint32_t crash;                   /* before this event of it */
	bool cut;                         /* some list is longer than can be kept */
	uint32_t lines, contents, mask;
	struct view_line *line;
	uint32_t *index;
	unsigned char (*content)[HISTORY_LINE_SIZE];
};

/* Copies what the execution has left in its slot. Null if it has stored nothing. */
struct leaf *leaf_new(const struct session *session, const struct execution *execution,
		      bool descending);
void leaf_free(struct leaf *leaf);

/*
 * `view` is how memory was before the recovery that has crashed: it goes through what that has read
 * up to the crash, and is used up. Null if there is no memory.
 */
struct chain_state *chain_new(struct leaf *leaf, uint32_t crash, struct view *view,
			      const struct image *image);
/* The crash of `view` with each line in one version: those of the list, in its order. */
struct chain_state *chain_fixed(const struct view *view, const struct image *image,
				const uint32_t *version);
void chain_free(struct chain_state *state);

/* The next recovery of this execution starts from there. */
void chain_apply(const struct chain_state *state, struct execution *execution);

#endif
