/* SPDX-License-Identifier: BSD-3-Clause */
/* What a path has open, and how a process that is forked from it gets it for itself. */
#ifndef SYMBOLIC_DESCRIPTORS_H
#define SYMBOLIC_DESCRIPTORS_H

#include "runtime/runtime.h"

enum { DESCRIPTORS = 800 }; /* above are our own: see world_tables.c */

/* A regular file that the program has open. */
struct open_file {
	int fd;
	long at, flags, closes;
	int copy; /* of one that is written: for the new process; or -1 */
};

struct open_files {
	unsigned count;
	bool others; /* that two processes cannot have each for itself: pipes, sockets and the like
		      */
	struct open_file file[DESCRIPTORS];
};

/* At the beginning: what is not the program's. */
HIDDEN void descriptors_note_inherited(void);
HIDDEN void descriptors_find(struct open_files *files);
/* Files that are open for writing: what one process writes the other one must not see. */
HIDDEN void descriptors_copy_written(struct open_files *files);
/* In the process that goes on as it was, and in the new one. */
HIDDEN void descriptors_drop_copies(const struct open_files *files);
HIDDEN void descriptors_reopen(const struct open_files *files);

#endif
