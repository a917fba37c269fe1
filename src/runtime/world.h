/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of world.c: files as an execution sees them. */
#ifndef RUNTIME_WORLD_H
#define RUNTIME_WORLD_H

#include <limits.h>

#include "runtime/execution.h"

static inline struct world *world_here(void)
{
	return &runtime_execution->world;
}

/* ---- world_tables.c ---- */

/* Around all that follows; false: this thread has it already. */
HIDDEN bool world_lock(void);
HIDDEN void world_unlock(bool locked);

/* One name for one file: symbolic links are followed as far as there are any. */
HIDDEN bool world_find_path(int directory, const char *path, char result[PATH_MAX]);
/* Devices, and what the kernel makes up. */
HIDDEN bool world_is_outside(const char *path);

HIDDEN struct world_entry *world_entry_of(const char *path);
HIDDEN struct world_entry *world_set_entry(const char *path, enum world_kind kind, uint32_t file);

HIDDEN const struct world_backing *world_backing_of(uint32_t file);
HIDDEN void world_backing_path(int32_t fd, char text[64]);
/* A file of the command's for this one; false if there is none left. */
HIDDEN bool world_take_backing(uint32_t file);
/* A new file without a name, out of the way of the program's descriptors; -1 if there is none. */
HIDDEN int world_own_file(void);
/* Index of a new file at this path; WORLD_FILES if there is no room. */
HIDDEN uint32_t world_new_file(const char *path, bool existed);

/* ---- world.c ---- */

HIDDEN bool world_copy_file(int from, int to);
HIDDEN int world_raw_open(const char *path, int flags);
/* Gives the file a copy of its own of what is at `from_path`. */
HIDDEN bool world_copy_into(uint32_t file, const char *from_path);
HIDDEN void world_note_change(enum world_operation operation, uint32_t file, const char *path,
			      const char *to);
/* A recovery has asked what is at this path. */
HIDDEN void world_note_asked(const char *path, const struct world_entry *entry);
HIDDEN bool world_can_create(const char *path);

#endif
