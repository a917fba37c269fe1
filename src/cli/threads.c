/* SPDX-License-Identifier: BSD-3-Clause */
/* perdure threads: threads that act on what others have not yet persisted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/analysis.h"
#include "cli/commands.h"
#include "cli/repairs.h"
#include "drive/listener.h"
#include "drive/rerun.h"
#include "drive/windows.h"
#include "report/functions.h"
#include "report/regions.h"

static void print_threads_help(void)
{
	printf("perdure threads [options] [--] PROG [ARGS]\n\n"
	       "Runs PROG, as it is or built with perdure-cc, twice: the first time to learn which of\n"
	       "its instructions touch persistent memory and how its threads synchronise. Reports\n"
	       "loads of what another thread has stored and not yet persisted.\n\n");
	options_help(stdout, OPTIONS_THREADS);
}

/* Nothing else is looked for, and what nobody has asked for is the default. */
static void set_up(struct session *session, const struct options *options)
{
	struct session_races *races = &session->races;

	races->settings = options->races;
	races->settings.seed = (uint32_t)options->schedules.seed;
	races->on = true;
	if (!races->settings.detectors)
		races->settings.detectors = RACES_PIFR;
	if (!races->settings.sample)
		races->settings.sample = 1;
	session->options.enabled &= 1u << KIND_THREAD_RACE;
}

/* Functions that the user names; those that are nowhere are a mistake. */
static void find_functions(struct session *session, const struct options *options)
{
	struct session_races *races = &session->races;
	char *program = target_find_program(options->command[0]);

	for (unsigned i = 0; program && i < options->acquires + options->releases; i++) {
		bool acquires = i < options->acquires;
		const char *name =
			acquires ? options->acquire[i] : options->release[i - options->acquires];
		uint32_t before = races->functions;

		functions_find(program, name, acquires, races);
		if (races->functions == before)
			fprintf(stderr, "perdure: there is no function %s in %s\n", name, program);
	}
	free(program);
}

/*
 * Threads that get on otherwise than natively find what is wrong in programs, an endless loop, too.
 * What takes ten times as long as the first run does not end any more.
 */
static void limit_later_runs(struct rerun *rerun)
{
	enum { TIMES = 10, MORE = 20 };

	if (!rerun->limits.timeout)
		rerun->limits.timeout = TIMES * rerun->first_cpu_time + MORE;
}

static bool run_all(struct rerun *rerun, long runs, struct target_end *end)
{
	struct session_races *races = &rerun->session->races;
	bool own_timeout = !rerun->limits.timeout;

	races->discovers = true;
	races->restores = true;
	/* One that does not end by itself must leave time for the others. */
	rerun->limits.max_time /= 2;
	if (!rerun_once(rerun, false, false, end))
		return false;
	if (end->budget && !target_interrupted())
		end->budget = NULL;
	races->discovers = end->budget != NULL;
	limit_later_runs(rerun);
	for (long i = 1; i <= runs && !end->budget; i++) {
		bool done;

		races->settings.seed += i > 1;
		if (!windows_start(rerun->session))
			return false;
		done = rerun_once(rerun, i == runs, i == runs, end);
		windows_stop(rerun->session);
		if (!done)
			return false;
	}
	if (own_timeout && end->budget && strcmp(end->budget, "--timeout") == 0)
		end->budget = "perdure: it took more than ten times as long as in its first run "
			      "(--timeout sets another limit)";
	return true;
}

int command_threads(char **words)
{
	struct target_end end = { 0 };
	struct rerun rerun = { 0 };
	struct session *session;
	struct options options;
	struct result result = { .engine = "threads" };
	double started = target_now();
	bool done;
	int fd, status;

	if (options_parse(&options, words, OPTIONS_THREADS))
		return EXIT_BAD_USAGE;
	if (options.help) {
		print_threads_help();
		return EXIT_NOTHING_FOUND;
	}
	status = analysis_prepare(&options, &fd, &session);
	if (status)
		return status;
	set_up(session, &options);
	rerun = (struct rerun){
		.session = session,
		.command = options.command,
		.drive = options.drive,
		.limits = { options.max_time, options.timeout, options.max_memory },
		.progress = !options.quiet && isatty(STDERR_FILENO),
		.planned = 1 + (unsigned)(options.runs ? options.runs : 1),
	};
	if (!target_prepare(fd, options.session.heap) || !rerun_start(&rerun)) {
		listener_finish(session, options.max_time);
		return EXIT_CANNOT_WORK;
	}
	find_functions(session, &options);
	done = run_all(&rerun, options.runs ? options.runs : 1, &end);
	rerun_finish(&rerun);
	races_drop_locks(session);
	if (!done) {
		listener_finish(session, options.max_time);
		return EXIT_CANNOT_WORK;
	}
	result.command = options.command;
	result.exit_status = end.exit_status;
	result.signal = end.signal;
	result.races = &session->races;
	if (options.dump_regions && !regions_write(session, options.dump_regions))
		return EXIT_CANNOT_WORK;
	if (options.check_recovery)
		result.missed = repairs_find(&options);
	result.seconds = target_now() - started;
	return analysis_finish(&options, session, fd, &result, end.budget, getpid());
}
