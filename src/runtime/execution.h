/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `perdure check` inside the target: the log of the run before the crash, recoveries, and the files
 * that both see.
 */
#ifndef RUNTIME_EXECUTION_H
#define RUNTIME_EXECUTION_H

#include "runtime/runtime.h"

/* This process's execution; null if it is none of a check. */
extern HIDDEN struct execution *runtime_execution;
extern HIDDEN uint8_t runtime_logs;     /* the run before the crash */
extern HIDDEN uint8_t runtime_recovers; /* a run after it */
extern HIDDEN uint8_t runtime_relogs;   /* … that may crash as well */
extern HIDDEN uint8_t runtime_explores; /* a path of an exploration */

#define EXECUTION_VARIABLE "PERDURE_EXECUTION"
#define ZYGOTE_VARIABLE "PERDURE_ZYGOTE"
#define STACK_LIMIT_VARIABLE "PERDURE_STACK_LIMIT"

/* Not memcpy, which the runtime itself stands in for. */
static inline void plain_copy(void *to, const void *from, size_t n)
{
	if (n == 8)
		__builtin_memcpy(to, from, 8);
	else if (n == 4)
		__builtin_memcpy(to, from, 4);
	else
		__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n)::"memory");
}

/* ---- execution.c ---- */

/* Joins the execution with this number. */
HIDDEN void execution_join(uint32_t number);
/* What it does from now on is no function of what it reads. */
HIDDEN void execution_note_input(enum execution_input input);

/* ---- execution_heap.c ---- */

/* --pm-heap: the heap becomes that of this execution. */
HIDDEN void execution_use_heap(void);
HIDDEN void execution_heap_after_fork(void);

/* ---- zygote.c ---- */

/*
 * If the command asked for it, this process only forks executions, when it is told to; this returns
 * in each of them.
 */
HIDDEN void zygote_serve(void);

/* ---- log.c ---- */

HIDDEN void log_event(enum history_kind kind, uint32_t flags, uint32_t thread, uint64_t address,
		      uint64_t size, uint32_t stack, const void *bytes);
/* A recovery that logs: its stores, flushes (or ORDERED), fences, and what persists. */
HIDDEN void log_recovery(enum history_kind kind, uint32_t detail, const void *p, uint64_t size,
			 const struct frame *frame);
/* An event as the stream has it. */
HIDDEN void log_told(const struct perdure_event *event);
/* A new object whose content nobody has set, but for stores from event `since` on. */
HIDDEN void log_alloc(const void *p, uint64_t size, uint32_t since, const struct frame *frame);
/* `flags` as in history.h. */
HIDDEN void log_world(const struct world_change *change, const void *bytes, uint32_t flags);

/* ---- foreign.c ---- */

/* Before the crash: looks for what code without hooks has written. */
HIDDEN void foreign_compare(void);
/* These bytes are known. */
HIDDEN void foreign_stored(uint64_t address, uint64_t size);

/* ---- recovery.c ---- */

HIDDEN void recovery_start(void);
/* Before the program loads: makes memory look right, and notes what is read. */
HIDDEN void recovery_load(const void *p, uint64_t size, uint32_t flags, const struct frame *frame);
/* It has a new object there. */
HIDDEN void recovery_allocated(const void *p, uint64_t size);
/* `flags` as in a descriptor. */
HIDDEN void recovery_stored(const void *p, uint64_t size, uint32_t flags,
			    const struct frame *frame);
/* Something other than memory, known by a hash, was found to be in this state. */
HIDDEN void recovery_asked(uint64_t what, uint64_t state);
/* Maps a file of the world, once for all. */
HIDDEN void *recovery_map(struct session_file *file, int fd, uint64_t length, int protection,
			  uint64_t offset);
HIDDEN void *recovery_remap(void *address, uint64_t size);
/* False if nothing of the world is mapped there. */
/* PM at this address has been mapped at another one as well: see mirror.c. */
HIDDEN void recovery_mirror(uint64_t address);
HIDDEN bool recovery_unmap(uint64_t start);
/* The same bytes as read does, from where the file is mapped; -1 if that cannot be done. */
HIDDEN ssize_t recovery_read(uint32_t file, int fd, void *bytes, size_t size, off_t offset,
			     const struct frame *frame);
/* The file gets a copy of its own, with what this execution has made of it. */
HIDDEN void recovery_leave_image(uint32_t file, int own);
/* Regions without detection, and regions of interest. */
HIDDEN void recovery_skip(bool begin);
/* A verifier starts or ends; `frame` is that of its call, null if it is not known. */
HIDDEN void recovery_verify(bool begin, const struct frame *frame);
HIDDEN void recovery_interest(bool begin);

/* ---- symptoms.c ---- */

HIDDEN void symptoms_watch(void);
/* main returns this status. */
HIDDEN void symptoms_return(int status, const void *main_function);
/* The program ends with this status. */
HIDDEN void symptoms_exit(int status, const struct frame *frame);

/* ---- world.c ---- */

enum world_intent {
	WORLD_LOOK,   /* does not change the file */
	WORLD_CHANGE, /* opens an existing one to change it */
	WORLD_MAKE,   /* makes it if it does not exist */
	WORLD_REMOVE,
};

struct world_name {
	char text[64]; /* a path into /proc */
	bool created;  /* WORLD_MAKE: it did not exist */
	bool shared;   /* must be opened read-only */
	uint32_t file; /* index + 1; 0: the file is not the world's */
};

/*
 * The path to use instead of this one: the same if the file is not the world's. `name` may be null
 * for WORLD_LOOK. `directory` as for openat.
 */
HIDDEN const char *world_path(int directory, const char *path, enum world_intent intent,
			      struct world_name *name);
/* Opens as open does; `mode` as there. */
HIDDEN int world_open(int directory, const char *path, int flags, mode_t mode,
		      int (*real)(const char *, int, ...));
/* The file behind fd as index + 1; 0 if it is not the world's. */
HIDDEN uint32_t world_file_of(int fd);
/* If it must not be changed: gives fd, and the file, a copy that may be. */
HIDDEN void world_make_own(int fd);
/* A file for the heap, of this size; index + 1, or 0. */
HIDDEN uint32_t world_make_heap(uint64_t size);
/* Is there anything of the file in this execution's world? */
HIDDEN bool world_has(uint32_t file);
HIDDEN int world_open_backing(uint32_t file);
HIDDEN bool world_is_shared(uint32_t file);
HIDDEN void world_note_size(int fd);
HIDDEN void world_note_write(int fd, int64_t offset, const void *bytes, size_t size);
/* Some bytes of it may have been written unseen, by stdio. */
HIDDEN void world_note_content(int fd);
/* The one name of a file; `result` has room for PATH_MAX. */
HIDDEN void world_canonical(const char *path, char *result);
/* The path of the file behind fd; null if it is not the world's. */
HIDDEN const char *world_path_of(int fd);
/* Does this execution change anything in the directory? */
HIDDEN bool world_changes(const char *directory);
HIDDEN int world_unlink(int directory, const char *path, int (*real)(const char *path));
HIDDEN int world_rename(int from_directory, const char *from, int to_directory, const char *to);
HIDDEN int world_rmdir(const char *path, int (*real)(const char *path));
/* A process is about to be forked that goes on as well: nobody may change what both have. */
HIDDEN void world_share(void);
/* A copy of an ordinary file that is open; -1 if it is none of the world's. And it takes its place.
 */
HIDDEN int world_copy_open(int fd);
HIDDEN void world_use_copy(int fd, int copy);
/* The path leads to this file from now on, which stays open. */
HIDDEN void world_put(const char *path, int fd);
HIDDEN int world_mkdir(int directory, const char *path, mode_t mode);

#endif
