/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cross-failure bugs, as xfdetector.txt §3 defines them, with Px86's precision: what a recovery
 * reads is judged in the light of what the crash could have left. Fed with the reads of one
 * recovery, in order, whether it has just run or is known to do the same as one that ran before.
 */
#ifndef CHECKERS_CROSS_FAILURE_H
#define CHECKERS_CROSS_FAILURE_H

#include "checkers/checkers.h"
#include "checkers/torn.h"

/* What is the same for all recoveries. */
struct cross_failure {
	struct session *session;
	uint8_t *was_read; /* one bit an event: a recovery could have read this store */
	bool judges;       /* otherwise it only counts what is read */
	struct torn *torn; /* null: torn stores are not looked for */
	struct cross_failure_objects *objects;
	uint8_t *stage_read;  /* one bit a call stack: a store of a recovery there was read … */
	uint32_t stage_reads; /* … in so many bytes */
	uint8_t *stack_kind;  /* what is known of call stacks */
	uint32_t stack_kinds;
};

/* A range that a transaction of a prebuilt library restores after this crash. */
struct cross_failure_protected {
	uint32_t thread;
	uint64_t start, end;
};

enum { CROSS_FAILURE_EVENTS = 16, CROSS_FAILURE_STAGES = 5 };

/* One recovery. */
struct cross_failure_run {
	struct view view;
	const unsigned char *(*content)(const void *image, uint64_t address);
	const void *image;
	const struct cross_failure_protected *protected;
	uint32_t protecteds;
	/*
	 * After several crashes: what has crashed, the last one first, and before which of their
	 * events; the program is behind the recoveries.
	 */
	struct cross_failure_stage {
		const struct history *history;
		uint32_t crash;
		struct torn *torn; /* null: not looked for */
	} stage[CROSS_FAILURE_STAGES];
	unsigned stages;
	/* Results. */
	bool read_something; /* that was stored before the crash */
	/* Events of stores that might be missing and were read, newest last; and those that were.
	 */
	uint32_t suspects, absents;
	uint32_t suspect[CROSS_FAILURE_EVENTS], absent[CROSS_FAILURE_EVENTS];
	/* Of each commit variable: the event that wrote what was read of it, and the one before. */
	struct {
		bool seen;
		uint32_t event, before;
	} observed[VIEW_COMMITS];
};

/*
 * A read of something certain that needs no other judgement than that of its stores' tearing. The
 * number of the only part that it reads + 1, 0 if there are more, UINT32_MAX if there is none.
 */
uint32_t cross_failure_judge_torn(struct cross_failure *checker, struct cross_failure_run *run,
				  const struct read_record *record,
				  void (*found)(void *context, const struct raw_finding *finding),
				  void *context);

void cross_failure_end(struct cross_failure *checker);
bool cross_failure_start(struct cross_failure *checker, struct session *session);

/* Puts the bytes of the read, as this run finds them, through view_read; returns their hash. */
uint64_t cross_failure_value(struct cross_failure_run *run, const struct read_record *record,
			     struct view_read *read);

/*
 * Judges a read. `found` is called for each finding, which is not complete before it knows of the
 * crash.
 */
void cross_failure_judge(struct cross_failure *checker, struct cross_failure_run *run,
			 const struct read_record *record,
			 void (*found)(void *context, const struct raw_finding *finding),
			 void *context);

#endif
