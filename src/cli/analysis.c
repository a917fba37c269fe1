/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/analysis.h"

#include <limits.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkers/checkers.h"
#include "cli/commands.h"
#include "cli/last.h"
#include "cli/models.h"
#include "drive/check.h"
#include "drive/listener.h"
#include "drive/plugins.h"
#include "drive/target.h"
#include "report/html.h"
#include "report/baseline.h"
#include "report/suppress.h"
#include "report/write.h"

/* ---- before ---- */

/* Files that the options name are read before anything runs. Messages are on standard error. */
static bool read_inputs(const struct options *options)
{
	char error[1024];

	for (unsigned i = 0; i < options->suppressions; i++)
		if (suppress_read(options->suppress[i], error, sizeof(error)) < 0) {
			fprintf(stderr, "perdure: %s\n", error);
			return false;
		}
	if (options->baseline && baseline_read(options->baseline, error, sizeof(error)) < 0) {
		fprintf(stderr, "perdure: --baseline %s: %s\n", options->baseline, error);
		return false;
	}
	return true;
}

static void note_program(struct session_program *program, char *const *command)
{
	char *path = command && *command ? target_find_program(*command) : NULL;
	struct stat status;

	if (path && stat(path, &status) == 0)
		*program = (struct session_program){ status.st_dev, status.st_ino };
	free(path);
}

int analysis_prepare(struct options *options, int *fd, struct session **result)
{
	struct session *session;
	char error[1024];
	int status;

	if (!read_inputs(options))
		return EXIT_BAD_USAGE;
	session = session_create(fd, error, sizeof(error));
	if (!session) {
		fprintf(stderr, "perdure: %s\n", error);
		return EXIT_CANNOT_WORK;
	}
	session->options = options->session;
	session->lines.model = options->session.model;
	note_program(&session->options.program[0], options->command);
	note_program(&session->options.program[1], options->recover);
	status = models_load(&session->library, options);
	if (status)
		return status;
	checkers_start(session);
	session->explores = options->explores;
	if (!listener_start(session, options->trace, options->plugins))
		return EXIT_CANNOT_WORK;
	*result = session;
	return 0;
}

/* ---- after ---- */

/* Why there is nothing to say about this run; null if there is. */
static bool explain_emptiness(const struct session *session, const char *program)
{
	if (!session->images) {
		fprintf(stderr,
			"perdure: the runtime did not start in %s (%s); nothing was observed\n",
			program, target_why_not(program));
		return true;
	}
	if (!session->pm_mapped) {
		fprintf(stderr, "perdure: %s mapped no persistent memory; nothing was observed\n",
			program);
		if (!session->instrumented)
			fprintf(stderr, "perdure: hint: it was not built with perdure-cc\n");
		if (session->seen_files)
			fprintf(stderr,
				"perdure: hint: it mapped these files; name the PM among them "
				"with --pm:\n");
		else
			fprintf(stderr,
				"perdure: hint: it mapped no file shared; if it uses the heap as PM, "
				"try --pm-heap\n");
		for (uint32_t i = 0; i < session->seen_files; i++)
			fprintf(stderr, "  %s\n", session->seen_file[i]);
		return true;
	}
	if (session->races.on && session->races.discovers) {
		fprintf(stderr,
			"perdure: %s was ended in its first run, before it was watched; --max-time "
			"gives all runs their share\n",
			program);
		return true;
	}
	if (session->races.on && !session->races.regions) {
		fprintf(stderr,
			"perdure: %s touched no persistent memory before it ended; nothing "
			"was observed\n",
			program);
		return true;
	}
	if (!session->instrumented) {
		fprintf(stderr,
			"perdure: %s was not built with perdure-cc: its accesses to PM cannot be seen; "
			"build it with CC=perdure-cc CXX=perdure-c++\n",
			program);
		return true;
	}
	return false;
}

/* "%p" in a file name becomes the process number: parallel tests must not share one file. */
static char *expand_path(const char *path, pid_t pid)
{
	const char *percent = strstr(path, "%p");
	char *result;

	if (!percent)
		return strdup(path);
	if (asprintf(&result, "%.*s%d%s", (int)(percent - path), path, pid, percent + 2) < 0)
		abort();
	return result;
}

static bool write_file(const char *option, int (*writer)(const char *, const struct result *),
		       const struct result *result, pid_t pid)
{
	char *path;
	bool written = true;

	if (!option)
		return true;
	path = expand_path(option, pid);
	errno = EBADF;
	if ((strcmp(path, "-") == 0 && target_stdout_closed()) || writer(path, result) < 0) {
		fprintf(stderr, "perdure: cannot write %s: %s\n", path, strerror(errno));
		written = false;
	}
	free(path);
	return written;
}

static bool write_reports(const struct options *options, const struct result *result, pid_t pid)
{
	bool written = write_file(options->json, write_json, result, pid);

	written &= write_file(options->sarif, write_sarif, result, pid);
	written &= write_file(options->html, write_html, result, pid);
	written &= write_file(options->junit, write_junit, result, pid);
	written &= write_file(options->gen_suppressions, suppress_write, result, pid);
	if (!options->quiet && write_text(stderr, result, isatty(STDERR_FILENO)) < 0)
		written = false;
	if (options->stats) {
		write_stats(stderr, result);
		suppress_print_use(stderr);
	}
	return written;
}

/* What is found can be seen again without a file that somebody has asked for; if not, no harm is
 * done. */
static void keep_last(const struct result *result)
{
	char path[PATH_MAX];

	if (result->findings && !result->explore && !result->given && !result->races &&
	    last_path(path, sizeof(path)) && last_prepare(path))
		write_json(path, result);
}

static bool any_counts(const struct result *result)
{
	for (size_t i = 0; i < result->findings; i++)
		if (finding_counts(&result->finding[i]))
			return true;
	return false;
}

int analysis_finish(const struct options *options, struct session *session, int session_fd,
		    struct result *result, const char *budget, pid_t pid)
{
	static char here[PATH_MAX];
	enum listener_end heard;
	bool empty, written;
	struct stat status;

	if (fstat(session_fd, &status) == 0)
		result->session_bytes = status.st_blocks * 512ull;
	session_judge_rest(session);
	if (result->check)
		check_classify_lost(result->check);
	heard = listener_finish(session, options->max_time);
	if (heard == LISTENER_NO_TRACE)
		fprintf(stderr, "perdure: cannot write %s\n", options->trace);
	result_collect(result, session);
	suppress_apply(result);
	baseline_apply(result);
	if (result->review)
		result->review(result, result->review_context);
	result->session = session;
	result->json = options->json;
	result->directory = getcwd(here, sizeof(here));
	result->options = (char *const *)options->kept;
	result->has_baseline = options->baseline;
	result->enabled = session->options.enabled;
	result->complete = !budget && !(result->check && result->check->divergent);
	if (budget) {
		char text[128];

		snprintf(text, sizeof(text), "the program was ended early by %s", budget);
		result_limit(result, text);
	}
	empty = explain_emptiness(session, result->command[0]);
	if (empty)
		result->complete = false;
	plugins_describe(result);
	written = write_reports(options, result, pid);
	keep_last(result);
	if (!written || heard == LISTENER_NO_TRACE)
		return EXIT_CANNOT_WORK;
	if (any_counts(result))
		return options->error_status ? options->error_status : EXIT_FINDINGS;
	if (budget)
		return EXIT_BUDGET;
	if (heard == LISTENER_CRASHED)
		return EXIT_CANNOT_WORK;
	return empty ? EXIT_CANNOT_WORK : EXIT_NOTHING_FOUND;
}
