/* SPDX-License-Identifier: BSD-3-Clause */
/* perdure explore: all paths that symbolic inputs can take, judged by the pattern checkers. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/analysis.h"
#include "cli/commands.h"
#include "cli/crash.h"
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
	bool crashes; /* findings are those of crashes: perdure check shows them again */
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
		    !inputs_save(f, result, path, r->options->again,
				 r->crashes ? r->options->again_crash : NULL)) {
			fprintf(stderr, "perdure: cannot keep inputs in %s: %s\n", directory,
				strerror(errno));
			r->failed = true;
		}
	}
}

static bool keeps_inputs(const struct options *options, struct result *result)
{
	if (!options->inputs)
		result->inputs = INPUTS_DIRECTORY;
	else if (strcmp(options->inputs, "none") != 0)
		result->inputs = options->inputs;
	return result->inputs;
}

/* Inputs of paths that differ in what they do to PM, for crash injection. */
static bool write_paths(const struct explore *explore, int fd)
{
	for (uint32_t i = 0; i < EXPLORE_KEPT; i++) {
		const struct explore_kept *kept = &explore->input[i];

		if (kept->used && kept->crashes &&
		    write(fd, kept, sizeof(*kept)) != (ssize_t)sizeof(*kept))
			return false;
	}
	return true;
}

static int explore_all(struct options *options, bool shows_progress, int paths)
{
	struct target_end end = { 0 };
	struct explore_run run;
	struct steer steer = { 0 };
	struct review reviewer;
	struct session *session;
	struct result result = { .engine = "explore" };
	double started = target_now();
	int fd, status;

	status = analysis_prepare(options, &fd, &session);
	if (status)
		return status;
	run = (struct explore_run){
		.session = session,
		.session_fd = fd,
		.command = options->command,
		.max_time = options->max_time,
		.max_memory = options->max_memory,
		.steer = &steer,
		.shows_progress = shows_progress,
	};
	if (!set_up(session, options) || !target_prepare(fd, options->session.heap) ||
	    !explore_run(&run, &end)) {
		listener_finish(session, options->max_time);
		return EXIT_CANNOT_WORK;
	}
	result.command = options->command;
	result.explore = session->explore;
	result.session = session;
	session->explore->pm_reached = (uint32_t)steer_reached(&steer, session);
	result.seconds = target_now() - started;
	result.coverage = &steer.coverage;
	keeps_inputs(options, &result);
	reviewer = (struct review){ .options = options };
	result.review = review;
	result.review_context = &reviewer;
	steer.coverage.complete = !end.budget && inputs_lost_nothing(&session->explore->counts);
	status = analysis_finish(options, session, fd, &result, end.budget, getpid());
	if (options->coverage && coverage_write(options->coverage, &steer.coverage) < 0) {
		fprintf(stderr, "perdure: cannot write %s: %s\n", options->coverage,
			strerror(errno));
		return EXIT_CANNOT_WORK;
	}
	if (paths >= 0 && !write_paths(session->explore, paths))
		return EXIT_CANNOT_WORK;
	return reviewer.failed ? EXIT_CANNOT_WORK : status;
}

/* ---- --crash ---- */

/* All paths, in a process of its own: what it finds is found again, with crashes. */
static int find_paths(const struct options *options, int json, int paths)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct options own = *options;
		char path[64];

		snprintf(path, sizeof(path), "/proc/self/fd/%d", json);
		own.json = path;
		own.sarif = own.junit = own.gen_suppressions = own.baseline = NULL;
		own.inputs = "none";
		own.quiet = true;
		own.stats = false;
		own.error_status = 0;
		exit(explore_all(&own, !options->quiet && isatty(STDERR_FILENO), paths));
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return EXIT_CANNOT_WORK;
	return WEXITSTATUS(status);
}

static void take_over(struct result *result, json_t *explored)
{
	const json_t *limit;
	size_t i;

	result->explored = explored;
	json_array_foreach(json_object_get(explored, "limits"), i,
			   limit) if (json_string_value(limit))
		result_limit(result, json_string_value(limit));
}

/* How recoveries are explored: by a process of its own, which appends inputs to a file. */
static char **explorer_of(const struct options *options, int fd)
{
	enum { WORDS = 2 * SESSION_GLOBS + 4 * OPTIONS_FILES };
	static char *words[WORDS];
	char **recover = options->recover ? options->recover : options->command;
	unsigned n = 0, first = options->symbolics > options->program_symbolics
					? options->program_symbolics
					: 0;
	static char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), fd);
	words[n++] = (char *)"perdure";
	words[n++] = (char *)"explore";
	words[n++] = (char *)"--quiet";
	words[n++] = (char *)"--inputs=none";
	words[n++] = (char *)"--paths-to";
	words[n++] = path;
	for (unsigned i = 0; i < options->agains; i++)
		words[n++] = options->again[i];
	for (unsigned i = first; i < options->symbolics; i++)
		words[n++] = options->symbolic[i];
	words[n++] = (char *)"--";
	for (; *recover && n < WORDS - 1; recover++)
		words[n++] = *recover;
	return words;
}

static int explore_and_crash(struct options *options)
{
	int json = memfd_create("perdure-report", 0), paths = memfd_create("perdure-paths", 0);
	struct result result = { .engine = "explore" };
	struct review reviewer = { .options = options, .crashes = true };
	struct given given;
	double started = target_now();
	int status;

	options->explore.crash = true;
	status = find_paths(options, json, paths);
	if (status == EXIT_CANNOT_WORK || status == EXIT_BAD_USAGE)
		return status;
	lseek(json, 0, SEEK_SET);
	take_over(&result, json_loadfd(json, 0, NULL));
	if (!given_load(&given, paths) || !given.count) {
		fprintf(stderr, "perdure: no path could be kept: nothing was crashed\n");
		return EXIT_CANNOT_WORK;
	}
	given.to_recovery = !options->recover;
	if (options->sym_recover) {
		given.recoveries.fd = memfd_create("perdure-recoveries", 0);
		given.recoveries.explorer = explorer_of(options, given.recoveries.fd);
	}
	if (options->max_time) /* what is left of it, but something */
		options->max_time -= target_now() - started < options->max_time / 2
					     ? target_now() - started
					     : options->max_time / 2;
	options->explores = false;
	result.seconds = target_now() - started;
	result.given = given.count;
	keeps_inputs(options, &result);
	result.review = review;
	result.review_context = &reviewer;
	status = crash_everywhere(options, false, &given, &result);
	return reviewer.failed ? EXIT_CANNOT_WORK : status;
}

int command_explore(char **words)
{
	struct options options;
	int paths = -1;

	if (options_parse(&options, words, OPTIONS_EXPLORE))
		return EXIT_BAD_USAGE;
	if (options.help) {
		print_explore_help();
		return EXIT_NOTHING_FOUND;
	}
	if (!options.crash &&
	    (options.sym_recover || options.agains_crash || options.max_crash_points)) {
		fprintf(stderr, "perdure: %s needs --crash\n",
			options.sym_recover    ? "--sym-recover"
			: options.agains_crash ? options.again_crash[0]
					       : "--max-crash-points");
		return EXIT_BAD_USAGE;
	}
	if (options.schedules.replay) {
		fprintf(stderr,
			"perdure: --schedule script: is not for explore, which tries them all\n");
		return EXIT_BAD_USAGE;
	}
	if (options.crash)
		return explore_and_crash(&options);
	if (options.paths) {
		options.explore.every = true;
		paths = open(options.paths, O_WRONLY | O_APPEND | O_CLOEXEC);
		if (paths < 0) {
			fprintf(stderr, "perdure: %s: %s\n", options.paths, strerror(errno));
			return EXIT_CANNOT_WORK;
		}
	}
	return explore_all(&options, !options.quiet && isatty(STDERR_FILENO), paths);
}
