/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory and files as a crash leaves them, for one worker: everything that is certain is in files
 * without names, which recoveries open through /proc; what is not is listed. Crashes are taken in
 * ascending order, so an image is rolled forward from one to the next.
 */
#ifndef DRIVE_IMAGE_H
#define DRIVE_IMAGE_H

#include <sys/types.h>

#include "checkers/cross_failure.h"

struct image_file {
	int fd;
	unsigned char *memory; /* mapped, `mapped` bytes of it */
	uint64_t size, mapped;
};

struct image_line {
	uint64_t certain; /* bytes of stores before `from` */
	uint32_t from, to;
	bool open; /* in the list */
};

struct image {
	struct session *session;
	struct execution *execution;
	uint32_t crash; /* events before this one have happened */
	bool stored;    /* some of them are stores */
	struct world world;
	struct image_file file[WORLD_FILES];
	struct image_line *line; /* one for each of the history */
	uint32_t *open;          /* lines that are, or were until now, uncertain */
	uint32_t opens;
	uint64_t changes;  /* of files */
	uint64_t *touched; /* lines that may not be what they were at the crash before */
	uint32_t touches, touched_room;
	struct cross_failure_protected *protected;
	uint32_t protecteds, protected_room;
};

/* Before the first event. False with errno if there is no memory, or no room for copies. */
bool image_start(struct image *image, struct session *session, struct execution *execution);

/* Gives everything back; nothing happens if it was never started. */
void image_end(struct image *image);

/* Rolls on to a later crash, and fills in execution->crash. */
bool image_advance(struct image *image, uint32_t crash);

/* Gives the execution its files: lazy ones as they are, otherwise whole copies of PM. */
bool image_prepare(struct image *image);

/* Writes a PM file as the crash leaves it: with all that was stored, or only what is certain. */
bool image_save(struct image *image, uint32_t file, int fd, bool latest);

/* The line at an address with all that is certain; null where there is no PM. */
const unsigned char *image_content(const struct image *image, uint64_t address);

/* Does the read meet bytes that were stored before the crash, and are certain? */
bool image_was_stored(const struct image *image, const struct read_record *read);

/* The state of a path as recovery_asked has it, by the hash of the path. */
uint64_t image_asked(const struct image *image, uint64_t what);

#endif
