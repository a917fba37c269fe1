/* SPDX-License-Identifier: BSD-3-Clause */
/* Executions after a crash: started, watched, ended, and what they leave. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drive/engine.h"

enum { OUTPUT_TAIL = 4096, PROCESSES_MAX = 500 };
#define OUTPUT_MAX (256ull << 20)

bool worker_start(struct engine *engine, struct worker *worker, const struct task *task)
{
	struct execution *execution = worker->execution;

	execution->stage = judge_stage(task);
	execution->logs = execution->stage < engine->check->settings.crashes;
	execution->latest = task->latest;
	execution->random = task->random;
	execution->script_length = task->script_length;
	memcpy(execution->script, task->script, task->script_length);
	if (!image_prepare(&worker->image) || ftruncate(worker->output, 0) < 0 ||
	    !zygote_say(&worker->zygote, ZYGOTE_FORK, worker->number))
		return false;
	worker->customs = engine->session->raw.used[KIND_CUSTOM];
	worker->phase = WORKER_STARTING;
	worker->started = worker->looked = worker->idle_since = target_now();
	worker->cpu_before = 0;
	worker->ended_by = SYMPTOM_NONE;
	driver_start(&worker->driver, engine->check->settings.drive_recover
					      ? engine->check->settings.drive_recover
					      : engine->check->settings.drive);
	return true;
}

static char *read_tail(int fd)
{
	struct stat status;
	off_t start;
	char *text;
	ssize_t got;

	if (fstat(fd, &status) < 0 || !status.st_size)
		return NULL;
	start = status.st_size > OUTPUT_TAIL ? status.st_size - OUTPUT_TAIL : 0;
	text = calloc(OUTPUT_TAIL + 1, 1);
	if (!text)
		abort();
	got = pread(fd, text, OUTPUT_TAIL, start);
	for (ssize_t i = 0; i < got; i++)
		if (!text[i])
			text[i] = '?';
	return text;
}

static void classify(const struct engine *engine, const struct worker *worker, int status,
		     struct outcome *outcome)
{
	const struct execution *execution = worker->execution;
	char *sanitizer;

	*outcome = (struct outcome){ .status = status, .output = read_tail(worker->output) };
	sanitizer = symptom_sanitizer(outcome->output);
	if (worker->ended_by)
		outcome->symptom = worker->ended_by;
	else if (worker->driver.stopped && (!WIFSIGNALED(status) || WTERMSIG(status) == SIGTERM ||
					    WTERMSIG(status) == SIGKILL))
		outcome->symptom = SYMPTOM_NONE; /* as it was told to */
	else if (engine->check->settings.checker && status)
		outcome->symptom = SYMPTOM_INCONSISTENT;
	else if (sanitizer && status)
		outcome->symptom = SYMPTOM_SANITIZER;
	else if (WIFSIGNALED(status) && execution->deadlocked)
		outcome->symptom = SYMPTOM_DEADLOCK;
	else if (WIFSIGNALED(status))
		outcome->symptom = WTERMSIG(status);
	else if (engine->check->settings.bad_exit[WEXITSTATUS(status)])
		outcome->symptom = SYMPTOM_BAD_EXIT;
	if (outcome->symptom) {
		outcome->stack = execution->signal_stack;
		outcome->address = execution->signal_address;
	}
	if (outcome->symptom == SYMPTOM_DEADLOCK) {
		outcome->deadlocked = execution->deadlocked < EXECUTION_DEADLOCKED
					      ? execution->deadlocked
					      : EXECUTION_DEADLOCKED;
		memcpy(outcome->deadlock, execution->deadlock, sizeof(outcome->deadlock));
		outcome->stack = outcome->deadlock[0];
	}
	free(sanitizer);
}

static bool is_function_of_reads(const struct worker *worker)
{
	const struct execution *execution = worker->execution;

	return execution->lazy && !execution->inputs && !execution->reads_lost &&
	       !worker->driver.command;
}

/* What it has written to shared memory may be anything: it may have written wildly. */
static void distrust(struct execution *execution)
{
	uint32_t kept = 0;

	if (execution->reads > EXECUTION_READS)
		execution->reads = 0;
	for (uint32_t i = 0; i < execution->reads; i++) {
		const struct read_record *read = &execution->read[i];

		if (read->flags & READ_OUTSIDE ||
		    (read->line - SESSION_WINDOW < SESSION_WINDOW_SIZE &&
		     read->line % HISTORY_LINE_SIZE == 0))
			execution->read[kept++] = *read;
	}
	execution->reads_lost += execution->reads - kept;
	execution->reads = kept;
}

static bool reads_memory(const struct execution *execution)
{
	for (uint32_t i = 0; i < execution->reads; i++)
		if (!(execution->read[i].flags & READ_OUTSIDE))
			return true;
	return false;
}

/* What it stored, for crashes inside of it. */
static struct leaf *keep_leaf(struct engine *engine, const struct worker *worker)
{
	const struct execution *execution = worker->execution;
	struct leaf *leaf;

	if (!execution->logs || !execution->lazy)
		return NULL;
	if (execution->inputs || execution->spare_used || execution->log.full) {
		/* One that starts from nothing does what the program did before. */
		if (reads_memory(execution))
			session_limit(
				engine->session, UINT32_MAX,
				"--crashes: recoveries that change files, start processes, or "
				"use sockets or prebuilt libraries on PM were not crashed "
				"themselves");
		return NULL;
	}
	leaf = leaf_new(engine->session, execution, engine->descending);
	if (leaf) {
		leaf->next = engine->leaves;
		engine->leaves = leaf;
		lost_note(engine, leaf);
	}
	return leaf;
}

static void finish_execution(struct engine *engine, struct worker *worker, int status)
{
	struct execution *execution = worker->execution;
	const struct task *task = &worker->running;
	struct outcome outcome;

	driver_end(&worker->driver);
	distrust(execution);
	classify(engine, worker, status, &outcome);
	if (worker->probe) {
		engine->check->counts.probe_executions++;
		worker->probed.symptom = outcome.symptom;
		worker->probed.stack = outcome.stack;
		free(outcome.output);
		worker->phase = WORKER_IDLE;
		return;
	}
	if (worker->guard) {
		engine->check->counts.guard_executions++;
		if (outcome.symptom != worker->expected_symptom ||
		    execution->reads != worker->expected_reads) {
			engine->check->divergent = true;
			judge(engine, worker, task, execution->read, execution->reads, &outcome);
			judge_give_up_memo(
				engine,
				"a recovery did not do the same again though it read the same: "
				"what was taken from earlier ones may be wrong");
		}
	} else {
		engine->check->counts.executions++;
		if (engine->session->raw.used[KIND_CUSTOM] != worker->customs)
			resume_note_task(engine, worker);
		outcome.leaf = keep_leaf(engine, worker);
		if (!is_function_of_reads(worker))
			judge_give_up_memo(
				engine,
				"recoveries depend on more than what they read (threads, "
				"processes, sockets, a prebuilt library): each one was run");
		else if (engine->memo &&
			 !memo_add(engine->memo, execution->read, execution->reads, &outcome))
			judge_give_up_memo(
				engine,
				"recoveries that read the same did not do the same: each one "
				"was run");
		judge(engine, worker, task, execution->read, execution->reads, &outcome);
	}
	worker->guard = false;
	free(outcome.output);
	worker->phase = WORKER_IDLE;
}

static void end_execution(struct worker *worker, enum symptom why)
{
	if (worker->ended_by)
		return;
	worker->ended_by = why;
	/* The runtime notes where it is, and lets the signal do its work. */
	if (why == SYMPTOM_HANG || why == SYMPTOM_BLOCKED)
		kill(worker->pid, SIGTRAP);
	else
		target_signal_below(worker->zygote.pid, SIGKILL);
	worker->looked = target_now();
}

static bool fills_disk(const struct engine *engine, const struct worker *worker)
{
	struct stat status;
	uint64_t bytes = 0, allowed = OUTPUT_MAX;

	if (fstat(worker->output, &status) == 0)
		bytes += status.st_blocks * 512ull;
	for (uint32_t i = 0; i < worker->execution->spares; i++)
		if (fstat(worker->execution->spare[i], &status) == 0)
			bytes += status.st_blocks * 512ull;
	/* What the program has made, a recovery may make as well. */
	for (uint32_t i = 0; i < engine->session->executions.execution[0].spare_used; i++)
		if (fstat(engine->session->executions.execution[0].spare[i], &status) == 0)
			allowed += status.st_blocks * 1024ull;
	for (uint32_t i = 0; i < WORLD_FILES; i++)
		if (worker->image.file[i].fd > 0 && fstat(worker->image.file[i].fd, &status) == 0)
			allowed += status.st_blocks * 1024ull; /* it may write all it has anew */
	return bytes > allowed;
}

static long memory_limit(const struct engine *engine)
{
	static long half;

	if (engine->check->settings.max_memory)
		return engine->check->settings.max_memory;
	if (!half)
		half = sysconf(_SC_PHYS_PAGES) / 2 * (sysconf(_SC_PAGESIZE) / 1024) / 1024;
	return half;
}

void worker_watch(struct engine *engine, struct worker *worker)
{
	double now = target_now(), seconds;
	long megabytes, limit = engine->check->settings.timeout;

	if (worker->phase != WORKER_RUNNING)
		return;
	driver_tick(&worker->driver, worker->execution->listening, worker->execution->stage > 0,
		    worker->pid);
	if (worker->ended_by) {
		if (now - worker->looked > 0.5)
			target_signal_below(worker->zygote.pid, SIGKILL);
		return;
	}
	if (now - worker->looked < 0.05)
		return;
	worker->looked = now;
	target_usage(worker->pid, &seconds, &megabytes);
	if (seconds > worker->cpu_before + 0.02) {
		worker->cpu_before = seconds;
		worker->idle_since = now;
	}
	if (seconds > limit)
		end_execution(worker, SYMPTOM_HANG);
	else if (now - worker->idle_since > limit && !driver_is_busy(&worker->driver))
		end_execution(worker, SYMPTOM_BLOCKED);
	else if (megabytes > memory_limit(engine))
		end_execution(worker, SYMPTOM_MEMORY);
	else if (fills_disk(engine, worker))
		end_execution(worker, SYMPTOM_OUTPUT);
	else if (target_count_below(worker->zygote.pid) > PROCESSES_MAX)
		end_execution(worker, SYMPTOM_PROCESSES);
}

bool worker_hear(struct engine *engine, struct worker *worker)
{
	struct zygote_message message;
	int heard;

	while ((heard = zygote_hear(&worker->zygote, &message, 0)) > 0) {
		if (message.word == ZYGOTE_STARTED) {
			worker->pid = message.value;
			worker->phase = WORKER_RUNNING;
			if (message.value < 0) {
				fprintf(stderr, "perdure: cannot fork: %s\n",
					strerror(message.other));
				return false;
			}
		} else if (message.word == ZYGOTE_ENDED) {
			worker->end_status = message.value;
			if (!session_is_sound(engine->session)) {
				fprintf(stderr,
					"perdure: a recovery has overwritten Perdure's own memory; "
					"what was found so far is lost\n");
				engine->check->destroyed = true;
				return false;
			}
			if (!message.other) {
				finish_execution(engine, worker, worker->end_status);
				return true;
			}
			worker->phase = WORKER_REAPING;
			zygote_say(&worker->zygote, ZYGOTE_REAP, 0);
		} else if (message.word == ZYGOTE_REAPED) {
			finish_execution(engine, worker, worker->end_status);
			return true;
		}
	}
	if (heard < 0)
		fprintf(stderr,
			"perdure: a process that executions are forked from is gone: did a recovery "
			"kill its parent?\n");
	if (worker->phase == WORKER_REAPING)
		target_signal_below(worker->zygote.pid, SIGKILL);
	return heard >= 0;
}
