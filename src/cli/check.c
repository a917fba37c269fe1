/* SPDX-License-Identifier: BSD-3-Clause */
/* perdure check and perdure model: crash injection, judged by all checkers. */
#include "drive/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/analysis.h"
#include "cli/commands.h"
#include "cli/crash.h"
#include "drive/image.h"
#include "drive/listener.h"
#include "drive/resume.h"
#include "report/store_log.h"
#include "session/sparse.h"

enum { DEFAULT_TIMEOUT = 10 };

static void print_check_help(void)
{
	printf("perdure check [options] [--] PROG [ARGS]      (or without the word check)\n\n"
	       "Runs PROG, built with perdure-cc, once; finds every point at which a crash would leave\n"
	       "something else in persistent memory; and runs the recovery after each of them: PROG\n"
	       "again, or what --recover says. Files that the program changes are copies.\n\n");
	options_help(stdout, OPTIONS_CHECK);
}

static void print_model_help(void)
{
	printf("perdure model [options] [--] PROG [ARGS]\n\n"
	       "The same as perdure check, but recoveries are run with every value that they could read\n"
	       "after each crash. If nothing is found, and the result is complete, there is nothing to\n"
	       "find for this input and this schedule of threads.\n\n");
	options_help(stdout, OPTIONS_MODEL);
}

static struct check_settings settings_of(const struct options *options)
{
	struct check_settings settings = {
		.command = options->command,
		.recover = options->recover,
		.checker = options->checker,
		.drive = options->drive,
		.drive_recover = options->drive_recover,
		.jobs = options->jobs,
		.max_time = options->max_time,
		.timeout = options->timeout ? options->timeout : DEFAULT_TIMEOUT,
		.program_timeout = options->timeout,
		.max_memory = options->max_memory,
		.max_crash_points = options->max_crash_points,
		.only_crash = options->only_crash,
		.image = options->image,
		.image_latest = options->image_latest,
		.schedules = options->schedules,
		.strict = options->strict,
		.random = options->random,
		.crashes = options->crashes ? options->crashes : 1,
		.stop_on_first = options->stop_on_first,
		.no_prefix = options->no_prefix,
		.any_chunk_order = options->any_chunk_order,
		.resume = options->resume,
		.memo = !options->no_memo,
		.progress = !options->quiet && isatty(STDERR_FILENO),
	};

	if (!settings.schedules.count && settings.schedules.policy != SCHEDULE_SCRIPT)
		settings.schedules.count = 1;
	memcpy(settings.bad_exit, options->bad_exit, sizeof(settings.bad_exit));
	return settings;
}

/* --keep: the file gets the content that the run has left in its copy. */
static bool keep_file(const struct session *session, uint32_t index)
{
	const struct execution *program = &session->executions.execution[0];
	const struct world_file *file = &session->executions.file[index];
	int from = program->world.backing[index].fd, to;
	struct stat status;
	bool kept;

	to = open(file->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	if (to < 0)
		return false;
	kept = fstat(from, &status) == 0 && ftruncate(to, 0) == 0 &&
	       ftruncate(to, status.st_size) == 0 && sparse_copy(from, to, status.st_size);
	return close(to) == 0 && kept;
}

static bool keep_files(const struct session *session)
{
	bool kept = true;

	for (uint32_t i = 0; i < session->executions.files; i++) {
		if (!session->executions.file[i].pm || session->executions.file[i].path[0] != '/' ||
		    !session->executions.execution[0].world.backing[i].fd)
			continue;
		if (!keep_file(session, i)) {
			fprintf(stderr, "perdure: --keep: cannot write %s: %s\n",
				session->executions.file[i].path, strerror(errno));
			kept = false;
		}
	}
	return kept;
}

static void warn_of_vacuous(const struct check *check)
{
	const struct check_counts *counts = &check->counts;
	char text[240];

	/* With further crashes, a recovery may be there for the next one only. */
	if (!counts->recoveries || counts->vacuous * 2 <= counts->recoveries ||
	    counts->further_crash_points)
		return;
	snprintf(text, sizeof(text),
		 "%lu of %lu recoveries ended without reading anything that was stored before the "
		 "crash: %s",
		 counts->vacuous, counts->recoveries,
		 check->session->options.heap
			 ? "a program whose PM is the heap finds its data again with "
			   "perdure_root_get (docs/annotations.md)"
			 : "is this the program that recovers (--recover)?");
	session_limit(check->session, UINT32_MAX, text);
}

static void warn_of_verifier(const struct session *session, const struct options *options)
{
	if (options->verifiers && !session->executions.verified)
		session_limit(
			(struct session *)session, UINT32_MAX,
			"--verifier: no recovery has called such a function; if it is inlined, "
			"call perdure_verify_begin() and perdure_verify_end() in it");
}

int crash_everywhere(struct options *options, bool exhaustive, struct given *given,
		     struct result *result)
{
	struct check check = { 0 };
	struct session *session;
	double started = target_now();
	struct stat given_input;
	int fd, status;

	if (options->resume && !resume_prepare(options->resume))
		return EXIT_CANNOT_WORK;
	status = analysis_prepare(options, &fd, &session);
	if (status)
		return status;
	session_use_executions(session);
	session->executions.volatile_is_plain = options->plain_volatile;
	check.session = session;
	check.settings = settings_of(options);
	check.settings.exhaustive = exhaustive;
	check.settings.given = given;
	if (!check_run(&check, fd) || (options->keep && !keep_files(session))) {
		if (!check.destroyed)
			listener_finish(session, options->max_time);
		return EXIT_CANNOT_WORK;
	}
	if (session->executions.too_large) {
		fprintf(stderr,
			"perdure: a file that the program opens for writing is too large to be "
			"copied: it holds more than a quarter of the machine's memory\n");
		listener_finish(session, options->max_time);
		return EXIT_CANNOT_WORK;
	}
	if (session->executions.files_lost) {
		fprintf(stderr,
			"perdure: the program, or a recovery, changes more files than can be kept "
			"apart (%d); what it did without them means nothing\n",
			WORLD_FILES);
		listener_finish(session, options->max_time);
		return EXIT_CANNOT_WORK;
	}
	if (session->executions.ranges_overlap) {
		fprintf(stderr, "perdure: perdure_commit_range: the ranges of two commit variables "
				"overlap; which one is to decide?\n");
		listener_finish(session, options->max_time);
		return EXIT_BAD_USAGE;
	}
	if (check.input <= 0 && fstat(STDIN_FILENO, &given_input) == 0 &&
	    S_ISREG(given_input.st_mode))
		check.input = dup(STDIN_FILENO);
	if (options->store_log && store_log_write(options->store_log, session) < 0) {
		fprintf(stderr, "perdure: cannot write %s: %s\n", options->store_log,
			strerror(errno));
		return EXIT_CANNOT_WORK;
	}
	warn_of_vacuous(&check);
	warn_of_verifier(session, options);
	if (options->random) {
		char text[96];

		snprintf(text, sizeof(text),
			 "--random: %ld recoveries were chosen by chance (--seed %lu)",
			 options->random, options->schedules.seed);
		session_limit(session, UINT32_MAX, text);
	}
	result->command = options->command;
	result->exit_status = check.end.exit_status;
	result->signal = check.end.signal;
	result->check = &check;
	result->seconds += target_now() - started;
	return analysis_finish(options, session, fd, result, check.budget, getpid());
}

int command_check(char **words)
{
	struct result result = { .engine = "check" };
	struct options options;

	if (options_parse(&options, words, OPTIONS_CHECK))
		return EXIT_BAD_USAGE;
	if (options.help) {
		print_check_help();
		return EXIT_NOTHING_FOUND;
	}
	return crash_everywhere(&options, false, NULL, &result);
}

int command_model(char **words)
{
	struct result result = { .engine = "model" };
	struct options options;

	if (options_parse(&options, words, OPTIONS_MODEL))
		return EXIT_BAD_USAGE;
	if (options.help) {
		print_model_help();
		return EXIT_NOTHING_FOUND;
	}
	return crash_everywhere(&options, true, NULL, &result);
}
