/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of crash injection: check.c leads, worker.c runs executions, judge.c judges them. */
#ifndef DRIVE_ENGINE_H
#define DRIVE_ENGINE_H

#include "checkers/cross_failure.h"
#include "drive/chain.h"
#include "drive/check.h"
#include "drive/driver.h"
#include "drive/image.h"
#include "drive/input.h"
#include "drive/memo.h"
#include "drive/path.h"
#include "drive/progress.h"
#include "drive/resume.h"
#include "drive/symptoms.h"
#include "drive/zygotes.h"

enum { ENGINE_TASKS = 64, ENGINE_WORKERS = EXECUTIONS - 1 };

/* One recovery that is to run: the policy, and what to take at the first choices. */
struct task {
	const struct chain_state *from; /* null: a crash of the program itself */
	bool latest;
	uint64_t random; /* as in view.h */
	uint32_t script_length;
	uint8_t script[VIEW_CHOICES];
};

struct worker {
	struct zygote zygote;
	unsigned number; /* of its execution */
	struct execution *execution;
	struct image image;
	struct view_state *state; /* for judging */
	size_t state_room;
	int output;
	/* The crash it works on. */
	uint32_t share_next, share_end; /* crashes that are still to do */
	bool has_crash, cut;
	bool resumed; /* only what is known to find something is run */
	uint32_t crash_number;
	struct task *task; /* that are still to do */
	unsigned tasks, task_room;
	unsigned given; /* have been done, or are being done */
	struct task running;
	struct chain_state *chains;    /* crashes inside of recoveries after this one */
	struct view_crash crash;       /* of the program */
	struct path path[2], scripted; /* known ways through the memo: oldest, latest */
	/* The execution that runs. */
	enum { WORKER_IDLE, WORKER_STARTING, WORKER_RUNNING, WORKER_REAPING } phase;
	pid_t pid;
	int end_status;
	double started, looked;
	double cpu_before; /* at the last look */
	double idle_since;
	enum symptom ended_by; /* why we ended it */
	bool guard;            /* its outcome is known already: this one */
	uint32_t expected_symptom, expected_reads;
	uint32_t customs; /* findings of recoveries' own before it */
	bool probe;       /* it is not to be judged: only … */
	struct {
		enum symptom symptom;
		uint32_t stack;
	} probed; /* … this is wanted */
	struct driver driver;
};

struct engine {
	struct check *check;
	struct session *session;
	struct cross_failure checker;
	struct worker *worker;
	unsigned workers;
	struct memo *memo; /* null: off */
	struct leaf *leaves;
	struct raw_finding *lost; /* stores of recoveries that never became persistent */
	uint32_t losts;
	struct resume resume;
	uint32_t *crash; /* events before which it crashes */
	uint32_t crashes, next_crash;
	uint32_t last_done;    /* the latest of those that are done with */
	uint32_t share;        /* how many a worker takes at a time */
	struct zygote program; /* the run before the crash is a fork of this */
	uint64_t seed;         /* of the last recovery that chose by chance */
	unsigned runs;         /* of the program */
	uint32_t schedule;     /* that of the last run, among those of the check; 0: not there */
	bool descending;       /* pieces of large stores come from the highest one down */
	bool ready;            /* workers can start recoveries */
	int nowhere;
	struct input recorded; /* standard input of the run before the crash … */
	int input;             /* … and what recoveries get for it */
	double started;
	struct progress progress;
};

/* ---- check.c ---- */

/* A recovery could have read a store made there. */
void check_mark_read(struct check *check, uint32_t stack);

/* ---- program.c ---- */

/* Empty files for an execution: as many as descriptors allow, but some there must be. */
bool program_make_spares(struct execution *execution, unsigned count);
/* The program runs to its end. False after a message. */
bool program_run(struct engine *engine);

/* ---- worker.c ---- */

/* Starts the task that was taken last. */
bool worker_start(struct engine *engine, struct worker *worker, const struct task *task);
/* Listens to the zygote; takes what an execution leaves. False if it is gone. */
bool worker_hear(struct engine *engine, struct worker *worker);
/* Ends an execution that takes too much of anything. */
void worker_watch(struct engine *engine, struct worker *worker);

/* ---- judge.c ---- */

/* After how many crashes? */
unsigned judge_stage(const struct task *task);
/* Judges an execution by what it read and how it ended, and adds what else is to be tried. */
void judge(struct engine *engine, struct worker *worker, const struct task *task,
	   const struct read_record *read, uint32_t reads, const struct outcome *outcome);
/* How memory is before an execution of this task has read anything. */
void judge_start_view(struct engine *engine, struct worker *worker, const struct task *task,
		      struct cross_failure_run *run);
/* Looks for torn stores of this history; null if nobody wants that. */
struct torn *judge_new_torn(const struct engine *engine, const struct history *history,
			    bool prebuilt);
/* The image has moved on: lines have changed. */
void judge_note_changes(struct worker *worker);
/* If it is known what this task will do: judges that, and returns it. Null if it must run. */
const struct path *judge_known(struct engine *engine, struct worker *worker,
			       const struct task *task);
/* What happened to the program itself, before any crash. */
void judge_program(struct engine *engine);
void judge_give_up_memo(struct engine *engine, const char *why);
void judge_add_task(const struct engine *engine, struct worker *worker, const struct task *task);

/* ---- lost.c ---- */

/* What this recovery has lost. */
void lost_note(struct engine *engine, const struct leaf *leaf);
/* It is known now what was read by later ones. */
void lost_report(struct engine *engine);

/* ---- explain.c ---- */

/*
 * Of each recovery that fails: which missing stores are enough, and what it has read. The workers
 * have nothing to do any more, and start from the beginning.
 */
void explain_failures(struct engine *engine);

#endif
