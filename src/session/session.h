/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One analysis as shared memory: options going in, findings coming out.
 *
 * The coordinator (the perdure command) creates it; every process of the target maps it, at the
 * same address, so that pointers inside are valid everywhere. It outlives the target: whatever
 * way a process ends, the coordinator still knows which stores were in flight.
 */
#ifndef SESSION_SESSION_H
#define SESSION_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "library/library.h"
#include "model/lines.h"
#include "model/transactions.h"
#include "perdure/event.h"
#include "session/execution.h"
#include "session/explore.h"
#include "session/places.h"
#include "session/races.h"
#include "session/raw.h"
#include "session/stacks.h"
#include "session/stream.h"

#define SESSION_BASE 0x210000000000ull
#define SESSION_WINDOW ((uint64_t)PERDURE_WINDOW_INDEX << PERDURE_WINDOW_SHIFT)
#define SESSION_WINDOW_SIZE (1ull << PERDURE_WINDOW_SHIFT)

enum {
	SESSION_THREADS = 1 << 16,
	SESSION_MODULES = 4096,
	SESSION_IMAGES = 4096, /* the last ones are for recoveries */
	SESSION_FILES = 256,
	SESSION_RANGES = 4096,
	SESSION_GLOBS = 64,
	SESSION_LIMITS = 256,
	SESSION_CUSTOM = 4096,
	SESSION_SERVANTS = 1024,
	SESSION_TRANSACTIONS = 1024,          /* threads that have transactions, at one time */
	SESSION_TRANSACTION_RANGES = 1 << 20, /* of one transaction */
	SESSION_PATH = 512,
};

enum session_listener { SESSION_STREAMS = 1, SESSION_LOGS = 2 };

/* A program image: one process between two execs. Forked children are images of their own. */
struct session_image {
	int32_t pid;
	uint32_t modules_of; /* the image whose modules describe this one: itself but after fork */
	bool ended;
};

struct session_module {
	uint64_t start, end; /* loaded addresses */
	uint64_t bias;       /* loaded address minus address in the file */
	uint32_t image;
	uint32_t generation; /* of the process's list of objects when it was noted */
	bool instrumented;
	bool patched;       /* that is, when it was loaded */
	bool trusted;       /* what it does to PM is not judged */
	bool discreet;      /* … on its own account: a prebuilt library that was patched */
	bool transactional; /* its own stores are no business of transactions */
	char path[SESSION_PATH];
};

/* A PM file: its slot in the window is [base, base + reserved). */
struct session_file {
	uint64_t device, inode;
	uint64_t base, reserved;
	uint64_t used;      /* highest mapped offset so far: what there is to judge */
	uint64_t second_of; /* inode of the file that this is a second place of, or 0 */
	uint64_t first; /* the file's offset at base; not 0 for a second place of the same file */
	uint32_t world; /* index + 1 of the file of a check that it stands for, or 0 */
	bool heap;      /* --pm-heap: not a file */
	bool unjudged;  /* some of it is mapped where it cannot be seen */
	char path[SESSION_PATH];
};

/* A mapped range of a PM file in one process: what one or more equal mmaps returned. */
struct session_range {
	uint32_t file; /* index + 1; 0 is a free entry */
	uint32_t image;
	uint64_t start, end; /* addresses */
	uint32_t count;
	int32_t protection;
};

/* What a plug-in said of a finding. */
struct session_custom {
	char oracle[64], message[256];
	char role[16], other_role[16];
	bool performance;
};

struct session_thread {
	struct lines_thread lines;
	bool used;
	uint64_t loads, stores, flushes, fences;
	struct stacks_cache stacks;
	struct stacks_context context[STACKS_CONTEXTS];
	struct stacks_telling telling[STACKS_TELLING]; /* by return address */
	struct stacks_first first[STACKS_FIRST];
} __attribute__((aligned(64)));

/* A thread's transactions, where they outlive it: what was in flight is known to be unfinished. */
struct session_transactions {
	uint32_t image; /* index + 1; 0: free */
	struct transactions state;
	struct range range[2 * SESSION_TRANSACTION_RANGES];
};

struct session_options {
	uint32_t enabled; /* bit set of finding kinds */
	enum lines_model model;
	bool heap;             /* --pm-heap */
	uint8_t second_window; /* --pm-at: 1 + the address's part above the window's bits; or 0 */
	uint32_t globs;
	char glob[SESSION_GLOBS][SESSION_PATH];
	struct session_program {
		uint64_t device, inode;
	} program[2];     /* what is analysed, and its recovery: other programs are not patched */
	uint32_t tx_only; /* --tx-only: structures that only transactions may change */
	char tx_only_name[SESSION_GLOBS][SESSION_PATH];
	uint32_t patch, no_patch; /* --patch, --no-patch */
	char patch_glob[SESSION_GLOBS][SESSION_PATH], no_patch_glob[SESSION_GLOBS][SESSION_PATH];
	bool trusts_none; /* --trust-lib none: libraries as they are are judged, too */
	uint32_t trusted; /* --trust-lib */
	char trusted_glob[SESSION_GLOBS][SESSION_PATH];
};

struct session {
	char magic[16];
	struct session_options options;

	bool idle;          /* nobody wants anything: no kind of finding, no events */
	uint32_t listening; /* who wants events: enum session_listener */
	uint32_t lock;      /* images, modules, files, ranges, threads, limits */
	uint32_t images, modules, files;
	uint64_t window_used;
	uint32_t pm_mapped; /* mappings that were PM, ever */
	uint32_t serves;    /* it listens on a socket: a client may come */
	uint32_t instrumented;
	uint32_t binary;               /* some of it was patched when it was loaded */
	uint32_t sites, sites_patched; /* instructions there that may touch PM */
	uint32_t redirected;           /* jumps to such instructions that nobody knew of */
	uint64_t unwound;              /* stacks that took unwind tables, which is slow */
	uint64_t loads, stores, flushes, fences; /* of threads that have ended */
	uint32_t skipped; /* events of signal handlers that interrupted a hook */
	uint32_t limits, limits_lost;
	uint32_t seen_files; /* files mapped that were not PM: for the hint */
	char seen_file[16][SESSION_PATH];
	char limit[SESSION_LIMITS][SESSION_PATH];

	uint32_t servants; /* functions of discreet libraries that only do what they are asked to */
	uint64_t servant[SESSION_SERVANTS];

	struct session_image image[SESSION_IMAGES];
	struct session_module module[SESSION_MODULES];
	struct session_file file[SESSION_FILES];

	struct library_table library;
	struct places places;
	struct stream stream;
	uint32_t plugin_at_work; /* index + 1 */
	uint32_t customs;
	struct session_custom custom[SESSION_CUSTOM];
	struct stacks stacks;
	struct raw_table raw;
	struct session_thread *thread;
	struct session_transactions *transactions;
	struct executions executions;
	struct session_races races;
	struct explore *explore; /* null: this is something else */
	bool explores;           /* it will be something of that kind */

	/* What each path of `explore` has for itself, with whole pages. */
	_Alignas(4096) struct lines lines;
	struct reservations reservations;
	uint32_t ranges, next_thread, threads_used;
	uint32_t transactions_used; /* none is behind these */
	struct session_range range[SESSION_RANGES];
};

/*
 * Coordinator: makes a session and maps it. The descriptor is returned in *fd. NULL with a
 * message in `error` if it cannot be done.
 */
struct session *session_create(int *fd, char *error, size_t error_size);

/* Target: maps the session behind `path` (a /proc/PID/fd link). NULL if it is not one. */
struct session *session_attach(const char *path);

/* Coordinator: this will be a check, with a log and executions. */
void session_use_executions(struct session *session);

/* Coordinator: this will be an exploration. */
void session_use_explore(struct session *session);

/*
 * A path: what is known of memory, threads and transactions becomes its own, and is copied when it
 * forks. `path` as for session_attach. False if it cannot be.
 */
bool session_make_own(struct session *session, const char *path);

/* Memory in the session that is never given back, for what is built once; null if it is used up. */
void *session_allocate(size_t size);

/* What was allocated so far is not used any more. */
void session_reset_allocations(void);

/* Is what never changes still there? A program that writes wildly may have destroyed it. */
bool session_is_sound(const struct session *session);

/* The PM file whose slot contains the address; null if there is none. */
const struct session_file *session_file_at(const struct session *session, uint64_t address);

/*
 * A call stack's addresses belong to an image, and to what was loaded in it at the time: dlclose
 * starts a new generation. Both in one number, as stacks_add wants it.
 */
static inline uint32_t session_stack_image(uint32_t image, uint32_t generation)
{
	return image | generation << 16;
}

/* The object that such an address belongs to; null if it is not known. */
const struct session_module *session_module_at(const struct session *session, uint32_t stack_image,
					       uint64_t address);

/* Adds a line to the report's `limits`, once. Owner as in spin.h. */
void session_limit(struct session *session, uint32_t owner, const char *text);

/* Room for the transactions of a thread of this image; null if there is none left. */
struct transactions *session_take_transactions(struct session *session, uint32_t image,
					       const struct lines_thread *thread);
void session_release_transactions(struct session *session, struct transactions *transactions);

/* Judges every range of this image, which has ended, that no running image maps as well. */
void session_end_image(struct session *session, struct lines_thread *judge, uint32_t image,
		       uint32_t owner);

/* Judges what no process has judged; the target must be gone. */
void session_judge_rest(struct session *session);

/* The same, and then nothing is known of memory any more: the program will run once again. */
void session_forget_run(struct session *session);

#endif
