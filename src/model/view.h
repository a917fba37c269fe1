/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory as one execution after a crash finds it. Of each uncertain line it keeps the versions that
 * are still possible after what the execution has read so far. What it reads is decided here:
 *
 *   ordinary data   the newest or the oldest possible version, as the policy says
 *   commit stores   any of the values that are possible, as a script says; without one, the policy
 *
 * or, exhaustively, all data like commit stores;
 * and every read is described: which of its bytes could have come from more than one store.
 *
 * The runtime uses it to make memory look right, the command to judge reads that it knows of. A
 * plain library: no OS calls, all memory is the caller's.
 */
#ifndef MODEL_VIEW_H
#define MODEL_VIEW_H

#include "model/history.h"

enum { VIEW_CHOICES = 1024, VIEW_COMMITS = 256, VIEW_CHECKSUMS = 256, VIEW_OPTIONS = 255 };

/* A line that is uncertain at the crash. */
struct view_line {
	uint64_t address;
	uint64_t certain; /* bytes that some store before `from` has written */
	uint32_t line;    /* in history.line */
	uint32_t from, to;
	uint32_t contents; /* not 0: what it may hold is a list, and the above is not used */
	uint32_t content;  /* where that starts in view_crash.content */
};

/* What is left of it; all zero before the first read. */
struct view_state {
	uint64_t alive[HISTORY_VERSIONS / 64];
	uint32_t chosen; /* the version that memory holds */
	uint32_t started;
};

/* Bytes that are benign to read: annotated commit variables. */
struct view_range {
	uint64_t start, end;
};

/* Where all executions after one crash start from; shared by them. */
struct view_crash {
	uint32_t crash;
	uint32_t lines;
	const struct view_line *line;
	const unsigned char (*content)[HISTORY_LINE_SIZE]; /* of lines that have lists */
	const uint32_t *index; /* hash table of index + 1 into line; mask + 1 entries */
	uint32_t mask;
};

/* How a range with a checksum may be found; behind these: one of some lines of it is old. */
enum view_whole { VIEW_ALL_NEW, VIEW_ALL_OLD, VIEW_TORN, VIEW_TORN_LINES = 4 };

struct view {
	const struct history *history;
	const struct view_crash *crash;
	struct view_state *state; /* one for each line of the crash */
	const struct view_range *commit;
	uint32_t commits;
	/* Exhaustively: data that is validated as a whole is one choice, of these ranges each. */
	const struct view_range *checksum;
	uint32_t checksums;
	uint8_t whole[VIEW_CHECKSUMS]; /* what was chosen: enum view_whole + 1; 0: not yet */
	/* The same for what is read while data is being verified, as this call of the verifier: */
	uint32_t verification; /* its number; 0: not now */
	struct view_verified {
		uint32_t verification; /* what the following is about */
		uint32_t lines;        /* uncertain ones so far */
		uint64_t last;         /* of them */
		enum view_whole whole; /* how it was found */
		bool turned;           /* that is not as before, and will not change any more */
	} verified;
	bool latest;
	bool strict;     /* atomic stores are no commit stores */
	bool exhaustive; /* every read with more than one possible value is a choice */
	uint64_t random; /* not 0: behind the script, choose by chance; changes with each choice */
	const uint8_t *script;
	uint32_t script_length;
	/* What was to be chosen so far, how many possibilities there were, and which was taken. */
	uint32_t choices;
	bool cut; /* something read had more versions than can be kept */
	uint8_t options[VIEW_CHOICES], taken[VIEW_CHOICES];
};

/* One read of some bytes of a line. */
struct view_read {
	const struct view_line *line; /* null: it is certain, and nothing below is set */
	struct history_versions versions;
	uint64_t open;   /* bytes that could come from more than one store */
	uint64_t commit; /* of these: only from commit stores */
	uint64_t varies; /* bytes that could have more than one value */
	bool differs; /* the possibilities of some of `open` but not `commit` have other values */
	bool chosen;  /* memory must be changed to hold `version` */
	uint32_t version, before;
	uint32_t store; /* a part: the newest store that might be missing, of the first open byte
			   that is not commit; HISTORY_NEVER if there is none */
};

/* Stores that some bytes may come from, each once: numbers of parts. */
enum { VIEW_WRITERS = 64 };
struct view_writers {
	uint32_t count;
	bool more; /* than there is room for */
	uint32_t part[VIEW_WRITERS];
};

/* Fills the hash table; `index` has mask + 1 zeroed entries, at least twice as many as lines. */
void view_index(const struct view_line *line, uint32_t lines, uint32_t *index, uint32_t mask);

const struct view_line *view_find(const struct view_crash *crash, uint64_t address);

/* The version that the policy would give the line if nothing was read before. */
uint32_t view_default(const struct history_versions *versions, bool latest);

/* Versions of an uncertain line. */
void view_versions(const struct history *history, const struct view_crash *crash,
		   const struct view_line *line, struct history_versions *versions);

/* The content of one of them, from what is certain. */
void view_content(const struct view *view, const struct view_line *line, uint32_t version,
		  const unsigned char *certain, unsigned char content[HISTORY_LINE_SIZE]);

/*
 * Reads bytes (one bit each) of the line at `address`. `certain` is the line with all that is
 * certain: what history_content starts from.
 */
void view_read(struct view *view, uint64_t address, uint64_t bytes, const unsigned char *certain,
	       struct view_read *read);

/*
 * Who may have written these bytes of a line, as far as is known: before a read of them; or who
 * has, if nothing is left to be decided (`chosen`), after it. Nobody, where that was before the
 * history.
 */
void view_writers(const struct view *view, uint64_t address, uint64_t bytes, bool chosen,
		  struct view_writers *writers);

#endif
