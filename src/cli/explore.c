/* SPDX-License-Identifier: BSD-3-Clause */
/* perdure explore: all paths that symbolic inputs can take, judged by the pattern checkers. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/analysis.h"
#include "cli/commands.h"
#include "drive/explore.h"
#include "drive/listener.h"
#include "drive/steer.h"
#include "report/inputs.h"

static void print_explore_help(void)
{
	printf("perdure explore [options] [--] PROG [ARGS]\n\n"
	       "Runs PROG, built with perdure-cc --symbolic, with inputs that may be anything, on all\n"
	       "paths that these can take, and reports what perdure run would; each finding comes\n"
	       "with an input that shows it (perdure replay).\n\n");
	options_help(stdout, OPTIONS_EXPLORE);
}

static bool set_up(struct session *session, const struct options *options)
{
	enum { LIVE = 600, PATH_MIB = 4, SOLVER_MS = 2000, TIMEOUT = 10, SPARES = 128 };
	struct explore_settings *settings;
	long jobs = options->jobs ? options->jobs : sysconf(_SC_NPROCESSORS_ONLN);

	session_use_explore(session);
	settings = &session->explore->settings;
	*settings = options->explore;
	settings->jobs = jobs > EXPLORE_SOLVERS ? EXPLORE_SOLVERS : (uint32_t)jobs;
	settings->live = LIVE;
	if (options->max_memory && options->max_memory / PATH_MIB < LIVE)
		settings->live = 1 + (uint32_t)(options->max_memory / PATH_MIB);
	settings->solver_ms = settings->solver_ms ? settings->solver_ms : SOLVER_MS;
	settings->timeout = options->timeout ? (uint32_t)options->timeout : TIMEOUT;
	settings->seed = options->schedules.seed;
	session->executions.command = getpid();
	session->executions.schedule.policy = options->schedules.policy;
	session->executions.schedule.seed = options->schedules.seed;
	session->executions.schedule.preemptions = options->schedules.preemptions;
	session->executions.execution[0].input = session->executions.execution[0].output =
		session->executions.execution[0].errors = -1;
	session->executions.execution[0].spares = SPARES;
	return true;
}

struct review {
	const struct options *options;
	bool failed;
};

/* Inputs of findings that count are kept. */
static void review(struct result *result, void *context)
{
	struct review *r = context;
	const char *directory = result->inputs;
	char path[PATH_MAX];

	for (size_t i = 0; directory && i < result->findings && !r->failed; i++) {
		const struct finding *f = &result->finding[i];

		if (!f->input || !finding_counts(f))
			continue;
		snprintf(path, sizeof(path), "%s/%s.json", directory, f->id);
		if ((mkdir(directory, 0777) < 0 && errno != EEXIST) ||
		    !inputs_save(f, result, path, r->options->again)) {
			fprintf(stderr, "perdure: cannot keep inputs in %s: %s\n", directory,
				strerror(errno));
			r->failed = true;
		}
	}
}

int command_explore(char **words)
{
	struct target_end end = { 0 };
	struct explore_run run;
	struct steer steer = { 0 };
	struct review reviewer;
	struct session *session;
	struct options options;
	struct result result = { .engine = "explore" };
	double started = target_now();
	int fd, status;

	if (options_parse(&options, words, OPTIONS_EXPLORE))
		return EXIT_BAD_USAGE;
	if (options.help) {
		print_explore_help();
		return EXIT_NOTHING_FOUND;
	}
	status = analysis_prepare(&options, &fd, &session);
	if (status)
		return status;
	run = (struct explore_run){
		.session = session,
		.session_fd = fd,
		.command = options.command,
		.max_time = options.max_time,
		.max_memory = options.max_memory,
		.steer = &steer,
		.shows_progress = !options.quiet && isatty(STDERR_FILENO),
	};
	if (!set_up(session, &options) || !target_prepare(fd, options.session.heap) ||
	    !explore_run(&run, &end)) {
		listener_finish(session, options.max_time);
		return EXIT_CANNOT_WORK;
	}
	result.command = options.command;
	result.explore = session->explore;
	result.session = session;
	session->explore->pm_reached = (uint32_t)steer_reached(&steer, session);
	result.seconds = target_now() - started;
	if (!options.inputs)
		result.inputs = INPUTS_DIRECTORY;
	else if (strcmp(options.inputs, "none") != 0)
		result.inputs = options.inputs;
	reviewer = (struct review){ .options = &options };
	result.review = review;
	result.review_context = &reviewer;
	status = analysis_finish(&options, session, fd, &result, end.budget, getpid());
	return reviewer.failed ? EXIT_CANNOT_WORK : status;
}
