/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Executions under `perdure check`: the run before the crash, which writes a log, and recoveries
 * after a crash, each of which has a slot here for what the command tells it and what it answers.
 *
 * Number 0 is the run before the crash, the others are the command's workers, one recovery each at
 * a time.
 */
#ifndef SESSION_EXECUTION_H
#define SESSION_EXECUTION_H

#include "model/history.h"
#include "model/view.h"

enum {
	EXECUTIONS = 65,
	EXECUTION_PATH = 512,
	EXECUTION_RANGES = 256,
	EXECUTION_DEADLOCKED = 16,
	EXECUTION_READS = 16 << 20,
	WORLD_ENTRIES = 256,
	WORLD_FILES = 192,
};

/* ---- files as an execution sees them ---- */

/*
 * A file that some execution may change. Executions work on copies, in files of the command that
 * have no name and are opened through /proc.
 */
struct world_file {
	char path[EXECUTION_PATH]; /* where it was first met, absolute */
	bool existed;              /* before the run; then the user's own file has that content */
	bool pm;                   /* mapped as PM by the run before the crash */
};

enum world_kind { WORLD_ABSENT, WORLD_FILE, WORLD_DIRECTORY };

/* What a path means. */
struct world_entry {
	uint32_t kind;
	uint32_t file; /* WORLD_FILE: index */
	char path[EXECUTION_PATH];
};

/* Where the content of a file is. */
struct world_backing {
	int32_t fd;     /* the command's descriptor; 0: nowhere yet */
	bool shared;    /* with later executions of this worker: must not be changed */
	uint64_t inode; /* of fd */
	uint64_t state; /* changes with the content and the size; of shared ones only */
};

struct world {
	uint32_t entries;
	struct world_entry entry[WORLD_ENTRIES];
	struct world_backing backing[WORLD_FILES];
};

enum world_operation {
	WORLD_CREATE, /* a new, empty file at this path */
	WORLD_SIZE,
	WORLD_WRITE,
	WORLD_UNLINK,
	WORLD_RENAME,
	WORLD_MKDIR,
};

/* In the log's data, for an event of kind HISTORY_WORLD. */
struct world_change {
	uint32_t operation;
	uint32_t file;
	uint64_t offset, size; /* WRITE: its bytes follow in the log */
	char path[EXECUTION_PATH], to[EXECUTION_PATH];
};

/* ---- the log of the run before the crash ---- */

struct event_log {
	uint32_t on;
	uint32_t events, events_max;
	uint64_t bytes, bytes_max;
	uint32_t full; /* events that found no room */
	struct history_event *event;
	uint32_t *reads; /* of a recovery: how much it had read before each event */
	unsigned char *data;
};

/* ---- what a recovery reads ---- */

enum read_flag {
	READ_LIBRARY = 1,  /* by the code of a library that has transactions */
	READ_UNJUDGED = 2, /* the program asked not to judge it */
	READ_BULK = 4,     /* a copy, not an access of its own */
	READ_OUTSIDE = 8,  /* not memory: `line` is the hash of a path, `value` its state */
	/* Above these: the number of the verification that it is part of, or 0. */
	READ_VERIFICATION_SHIFT = 8,
};

/* What `line` is for the number of crashes so far, which every execution asks for first. */
#define READ_STAGE 0x7374616765ull

/* The first read of some bytes that this execution has not written. */
struct read_record {
	uint64_t line;  /* address */
	uint64_t bytes; /* one bit each */
	uint64_t value; /* hash of these bytes */
	uint32_t stack;
	uint32_t flags;
};

/* ---- who runs when ---- */

enum schedule_policy {
	SCHEDULE_ROUND_ROBIN,
	SCHEDULE_RANDOM,
	SCHEDULE_PCT,
	SCHEDULE_SCRIPT, /* recoveries: round robin */
};

enum { SCHEDULE_CHOICES = 1 << 20 };

struct schedule_choice {
	uint8_t taken, ways;
};

struct schedule_settings {
	/* From the command. */
	uint32_t policy;
	uint32_t depth; /* PCT: of the bug; one priority changes less often than that */
	uint64_t seed;
	uint64_t steps;       /* PCT: how many points there are, about */
	uint32_t preemptions; /* SCRIPT: at most so many */
	uint32_t script_length;
	bool measure; /* count points, though the policy does not need them all */

	/* From the run before the crash. */
	uint64_t points; /* where it could have switched */
	uint32_t choices;
	bool choices_lost;
	struct schedule_choice *choice; /* the script, and what came of it */
};

/* ---- one execution ---- */

/* Why what it did is not a function of what it read. */
enum execution_input {
	INPUT_THREADS = 1,
	INPUT_PROCESSES = 2,
	INPUT_SOCKETS = 4,
	INPUT_FOREIGN = 8,   /* a prebuilt library reads PM */
	INPUT_PROGRAMS = 16, /* it has started other programs */
	INPUT_TIMERS = 32,   /* signals come when they like */
};

struct execution {
	/* From the command. */
	uint32_t stage;
	bool lazy; /* memory is decided as it is read; otherwise the whole image is as it is */
	bool latest, strict, exhaustive;
	bool logs;                     /* a further crash may come: what it does is written down */
	uint64_t random;               /* as in view.h */
	int32_t input, output, errors; /* the command's descriptors for 0, 1, 2; -1: inherited */
	struct view_crash crash;
	uint32_t script_length;
	uint8_t script[VIEW_CHOICES];
	struct world world;
	uint32_t spares; /* empty files to take */
	int32_t spare[WORLD_FILES];
	uint64_t spare_inode[WORLD_FILES];

	/* To the command. */
	uint32_t spare_used;
	uint32_t reads, reads_lost;
	struct read_record *read;
	uint32_t inputs; /* bit set of execution_input */
	uint32_t listening;
	uint32_t signal;
	uint32_t signal_stack;
	uint64_t signal_address;
	uint32_t deadlocked; /* threads that waited for each other */
	uint32_t deadlock[EXECUTION_DEADLOCKED];

	struct event_log log; /* if it logs */

	/* Room that the command uses; the first part is about the crash of the program. */
	uint32_t program_lines, program_index;
	struct view_line *line;
	uint32_t *index;
	unsigned char (*content)[HISTORY_LINE_SIZE];
};

struct executions {
	bool on;                /* this is `perdure check` */
	bool volatile_is_plain; /* --volatile plain: no commit stores */
	bool prebuilt;          /* transactions are those of a prebuilt library */
	uint32_t lock;          /* files */
	int32_t command;        /* process that has the descriptors */
	uint32_t too_large;     /* a file could not be copied */
	uint32_t files_lost;    /* there were more files than can be kept apart */
	int32_t empty;          /* the command's descriptor of an empty directory */
	uint64_t started_ns;    /* what the clock was, for all recoveries */
	uint32_t files;
	struct world_file file[WORLD_FILES];
	struct event_log log;
	struct history history;
	uint32_t commits, checksums;
	struct view_range commit[EXECUTION_RANGES]; /* commit variables */
	struct execution_cover {
		uint64_t variable; /* where it starts */
		struct view_range range;
	} cover[EXECUTION_RANGES]; /* what they are about */
	uint32_t covers;
	struct view_range checksum[EXECUTION_RANGES];
	uint32_t ranges_lost, ranges_overlap;
	char native_threads[160]; /* why threads are not fibers; empty: they are */
	struct schedule_settings schedule;
	/* Inputs of an exploration: which one (+ 1), where they are, and who gets them. */
	uint32_t given;
	int32_t given_fd; /* the command's */
	bool given_to_recovery;
	uint32_t given_recovery; /* the same for inputs that only recoveries get */
	int32_t given_recovery_fd;
	uint32_t causality_lost;     /* too many threads: what they knew is not in the log */
	uint32_t verified;           /* some recovery has verified data */
	uint32_t interest_after;     /* the program names regions of interest after the crash */
	struct execution *execution; /* EXECUTIONS of them */
};

/* The hash of some bytes of a line, as in read_record. */
uint64_t execution_hash(const unsigned char *line, uint64_t bytes);
uint64_t execution_hash_text(const char *text);

#endif
