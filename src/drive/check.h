/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Crash injection: the program runs once, and after every crash that this run could have met its
 * recovery runs, with what that crash leaves.
 */
#ifndef DRIVE_CHECK_H
#define DRIVE_CHECK_H

#include "drive/given.h"
#include "drive/schedules.h"
#include "drive/target.h"
#include "session/session.h"

enum { CHECK_CRASHES = 4, CHECK_MISSING = 8, CHECK_READS = 32 };

struct check_settings {
	struct given *given; /* inputs of an exploration; null: the program has what it has */
	char **command;
	char **recover; /* null: the command again */
	char **checker; /* instead of a recovery: 0 means that the image is consistent */
	const char *drive, *drive_recover;
	unsigned jobs;
	double max_time;
	long timeout;         /* CPU seconds of a recovery */
	long program_timeout; /* of the run before the crash; 0: none */
	long max_memory;
	uint32_t max_crash_points;  /* 0: all */
	uint32_t only_crash;        /* the event + 1 before which it happens; 0: all of them */
	const char *image;          /* where PM files are written as it leaves them; or null */
	bool image_latest;          /* … with all that was stored, or only what is certain */
	struct schedules schedules; /* of the program's threads */
	bool bad_exit[256];
	bool strict;
	bool exhaustive;      /* every value that a recovery can read */
	unsigned crashes;     /* in a chain, at most */
	uint64_t random;      /* so many of them, chosen by chance; 0: all */
	bool stop_on_first;   /* symptom */
	bool no_prefix;       /* torn stores: only what was not persistent at the crash itself */
	bool any_chunk_order; /* of the pieces of large stores: descending as well as ascending */
	const char *resume;   /* directory of what earlier runs have done; null: none */
	bool memo;
	bool progress;
};

/* What a failing recovery read, of something that could have been otherwise. */
struct check_read {
	uint64_t address, size;
	uint32_t load, store; /* store 0: made before the program ran */
	unsigned char value[8];
	bool newest;
};

/* What happened before, at and after one finding's crash; crash number 0: before any crash. */
struct check_witness {
	uint32_t crash_event;
	uint32_t crash_number; /* 1, 2, … */
	uint32_t crash_stack;  /* where the program was */
	uint32_t crash_points; /* of its schedule that were examined */
	uint32_t schedule;     /* index + 1 of its text; 0: there was no choice */
	bool latest, descending;
	uint32_t choices;
	uint8_t taken[VIEW_CHOICES];
	unsigned further;                      /* crashes in recoveries after that … */
	uint32_t further_stack[CHECK_CRASHES]; /* … and where these were */
	uint32_t deadlocked;                   /* threads that wait, and where */
	uint32_t deadlock[EXECUTION_DEADLOCKED];
	/* Of a symptom: the stores that must be missing, no fewer, if that was found out. */
	bool minimal;
	unsigned missing;
	struct check_missing {
		uint32_t stack;
		uint8_t why; /* enum history_reason, or 0 */
		uint32_t flush;
	} lost[CHECK_MISSING];
	unsigned reads; /* what it read where there was a choice, in order */
	struct check_read *read;
	char *message; /* of a symptom; null otherwise */
	char *output;
};

struct check_counts {
	uint64_t executions, memo_hits, guard_executions, probe_executions, vacuous, events,
		recoveries;
	uint64_t crash_points, crash_points_chosen, crash_points_done; /* of all schedules */
	uint32_t schedules;
	uint64_t further_crash_points; /* inside of recoveries */
	uint64_t choice_points;        /* reads with more than one possible value */
	double eager_states_log2;      /* what trying all contents of memory would take */
	uint64_t schedule_points;      /* of the last one: where it could have switched */
};

struct check {
	struct check_settings settings;
	struct session *session;
	struct target_end end; /* of the run before the crash */
	struct check_counts counts;
	struct check_witness *witness;
	uint32_t witnesses;
	const char *budget; /* what ended it early; null: nothing did */
	bool divergent;     /* a recovery did not do the same again */
	bool destroyed;     /* one has overwritten the session: nothing in it can be used */
	char **schedule;    /* those that witnesses are of, see schedules_describe */
	uint32_t schedules;
	uint8_t *read; /* one bit a call stack: a recovery could have read a store made there … */
	uint32_t read_room; /* … in so many bytes */
	int input;          /* what the program was given as standard input; 0: nothing is known */
	bool follows_reads; /* otherwise nothing is known of what recoveries read */
};

/*
 * Runs the program and its recoveries, and judges them. What the program has lost is not judged
 * yet. False after a message: it could not be done at all.
 */
bool check_run(struct check *check, int session_fd);

/* Stores that were never flushed, and that no recovery reads, are no matter of correctness. */
void check_classify_lost(const struct check *check);

#endif
