/* SPDX-License-Identifier: BSD-3-Clause */
/* The run before the crash. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drive/engine.h"

enum { TICK_MS = 20 };

bool program_make_spares(struct execution *execution, unsigned count)
{
	enum { LEAST = 8 };
	struct stat status;

	for (execution->spares = 0; execution->spares < count; execution->spares++) {
		int fd = memfd_create("perdure-file", MFD_CLOEXEC);

		if (fd < 0 || fstat(fd, &status) < 0)
			break;
		execution->spare[execution->spares] = fd;
		execution->spare_inode[execution->spares] = status.st_ino;
	}
	return execution->spares >= LEAST;
}

/* A program that goes on after its main process is waited for, like under run. */
static bool await_program(struct engine *engine, struct worker *worker)
{
	struct check *check = engine->check;
	struct target_limits limits = { check->settings.max_time, check->settings.program_timeout,
					check->settings.max_memory };
	struct zygote_message message;
	bool told = false, ended = false;

	for (;;) {
		int heard = zygote_hear(&worker->zygote, &message, TICK_MS);

		if (heard < 0)
			return false;
		if (heard && message.word == ZYGOTE_STARTED) {
			worker->pid = message.value;
			if (message.value < 0) {
				fprintf(stderr, "perdure: cannot fork: %s\n",
					strerror(message.other));
				return false;
			}
		}
		if (heard && message.word == ZYGOTE_ENDED) {
			int status = message.value;

			check->end.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
			check->end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
			if (!message.other)
				return true;
			zygote_say(&worker->zygote, ZYGOTE_REAP, 0);
			ended = true;
		}
		if (heard && message.word == ZYGOTE_REAPED)
			return true;
		driver_tick(&worker->driver, worker->execution->listening,
			    worker->execution->stage > 0, worker->pid);
		if (engine->runs == 1 && engine->recorded.record >= 0)
			input_tick(&engine->recorded);
		if (!check->budget && target_interrupted()) {
			check->budget = target_interrupted();
			if (strcmp(check->budget, "Ctrl-C") != 0)
				kill(worker->pid, SIGTERM);
			worker->started = target_now();
		}
		/* The zygote's own times have those of all schedules. */
		if (!check->budget && worker->pid > 0)
			check->budget = target_over_budget(worker->pid, &limits, engine->started);
		/* The terminal has sent Ctrl-C to the program as well; it has a second to end. */
		if (check->budget && (!target_interrupted() || target_now() - worker->started > 1))
			target_signal_below(worker->zygote.pid, SIGKILL);
		if (ended && !told && target_now() - engine->started > 5 && isatty(STDERR_FILENO)) {
			fprintf(stderr, "perdure: the program has ended; waiting for processes it "
					"left behind (Ctrl-C ends them)\n");
			told = true;
		}
	}
}

bool program_run(struct engine *engine)
{
	struct worker *worker = &engine->worker[0];
	struct executions *all = &engine->session->executions;
	struct execution *execution = &all->execution[0];
	struct execution *own = worker->execution;
	struct zygote own_zygote = worker->zygote;
	bool done, shown;

	execution->stage = 0;
	/* What it prints is shown once, and what it is given is the same each time. */
	shown = engine->check->settings.schedules.done == 1 && !all->schedule.measure &&
		!engine->check->settings.given;
	execution->output = execution->errors = shown ? -1 : engine->nowhere;
	if (engine->check->settings.given && engine->check->settings.given->input >= 0)
		engine->input = execution->input = engine->check->settings.given->input;
	else
		execution->input =
			engine->runs == 1 ? input_start(&engine->recorded) : engine->input;
	worker->execution = execution;
	worker->zygote = engine->program;
	worker->pid = 0;
	driver_start(&worker->driver, engine->check->settings.drive);
	done = zygote_say(&worker->zygote, ZYGOTE_FORK, 0) && await_program(engine, worker);
	driver_end(&worker->driver);
	if (done && !engine->check->budget && !driver_did_its_work(&worker->driver))
		return false;
	if (engine->runs == 1 && execution->input != engine->input)
		engine->input = input_end(&engine->recorded);
	worker->execution = own;
	worker->zygote = own_zygote;
	engine->check->counts.executions++;
	if (!done && !engine->check->budget)
		fprintf(stderr, "perdure: the program could not be started\n");
	return done || engine->check->budget;
}
