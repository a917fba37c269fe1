/* SPDX-License-Identifier: BSD-3-Clause */
/* perdure run: one native execution, judged by the pattern checkers. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "checkers/checkers.h"
#include "cli/commands.h"
#include "cli/models.h"
#include "cli/options.h"
#include "drive/listener.h"
#include "drive/plugins.h"
#include "drive/target.h"
#include "report/baseline.h"
#include "report/suppress.h"
#include "report/write.h"
#include "session/watch.h"

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

/* Returns 0, or the status to end with. */
static int prepare(struct options *options, int *fd, struct session **result)
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
	status = models_load(&session->library, options);
	if (status)
		return status;
	checkers_start(session);
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
			"perdure: the runtime did not start in %s (statically linked, or set-user-id?); "
			"nothing was observed\n",
			program);
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

static bool any_counts(const struct result *result)
{
	for (size_t i = 0; i < result->findings; i++)
		if (finding_counts(&result->finding[i]))
			return true;
	return false;
}

/* Judges what is left, reports, and says with what status to end. */
static int finish(const struct options *options, struct session *session, int session_fd,
		  struct result *result, const char *budget, pid_t pid)
{
	enum listener_end heard;
	bool empty, written;
	struct stat status;

	if (fstat(session_fd, &status) == 0)
		result->session_bytes = status.st_blocks * 512ull;
	session_judge_rest(session);
	heard = listener_finish(session, options->max_time);
	if (heard == LISTENER_NO_TRACE)
		fprintf(stderr, "perdure: cannot write %s\n", options->trace);
	result_collect(result, session);
	suppress_apply(result);
	baseline_apply(result);
	result->has_baseline = options->baseline;
	result->enabled = session->options.enabled;
	result->complete = !budget;
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

static void print_run_help(void)
{
	printf("perdure run [options] [--] PROG [ARGS]\n\n"
	       "Runs PROG, built with perdure-cc, and reports stores to persistent memory that are\n"
	       "never flushed or fenced, and flushes and fences that do nothing.\n\n");
	options_help(stdout);
}

int command_run(char **words)
{
	struct target_limits limits;
	struct target_end end;
	struct session *session;
	struct options options;
	struct result result = { .engine = "run" };
	double started = target_now();
	int fd, status;

	if (options_parse(&options, words, true))
		return EXIT_BAD_USAGE;
	if (options.help) {
		print_run_help();
		return EXIT_NOTHING_FOUND;
	}
	status = prepare(&options, &fd, &session);
	if (status)
		return status;
	limits = (struct target_limits){ options.max_time, options.timeout, options.max_memory };
	if (!target_run(options.command, fd, options.session.heap, &limits, &end)) {
		listener_finish(session, options.max_time);
		return EXIT_CANNOT_WORK;
	}
	result.command = options.command;
	result.exit_status = end.exit_status;
	result.signal = end.signal;
	result.seconds = target_now() - started;
	return finish(&options, session, fd, &result, end.budget, getpid());
}

/* ---- watching a program that somebody else started ---- */

static char *program_of(pid_t pid)
{
	char link[64], path[PATH_MAX];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	length = readlink(link, path, sizeof(path) - 1);
	path[length > 0 ? length : 0] = 0;
	return strdup(path);
}

/* Is any process of the session still there, other than the one that is ending? */
static bool others_alive(const struct session *session, pid_t pid)
{
	for (uint32_t i = 0; i < session->images; i++)
		if (!session->image[i].ended && session->image[i].pid != pid &&
		    target_is_alive(session->image[i].pid))
			return true;
	return false;
}

/* Until the program says that it ends, or is gone. True if it waits for an answer. */
static bool await_end(int channel, pid_t pid, const struct options *options, struct result *result,
		      const char **budget)
{
	enum { TICK_MS = 50 };
	struct target_limits limits = { options->max_time, options->timeout, options->max_memory };
	struct pollfd events[2] = { { .fd = channel, .events = POLLIN },
				    { .fd = syscall(SYS_pidfd_open, pid, 0), .events = POLLIN } };
	struct watch_request request;
	double started = target_now();

	for (;;) {
		int ready = poll(events, 2, TICK_MS);

		if (!*budget && (*budget = target_over_budget(pid, &limits, started))) {
			target_signal_below(pid, SIGKILL);
			kill(pid, SIGKILL);
		}
		if (ready <= 0)
			continue;
		if (events[0].revents & POLLIN &&
		    read(channel, &request, sizeof(request)) == sizeof(request)) {
			result->exit_status = request.status;
			return true;
		}
		if (events[0].revents)
			events[0].fd = -1; /* closed by a program that closes everything */
		if (events[1].revents)
			break;
	}
	result->exit_status = -1; /* how it ended is its parent's to know */
	return false;
}

/* PERDURE_OPTIONS holds options and nothing else. False after a message. */
static bool parse_environment(struct options *options, const char *text)
{
	char **words = options_split(text);

	if (!words) {
		fprintf(stderr, "perdure: PERDURE_OPTIONS: a quote is not closed: %s\n", text);
		return false;
	}
	if (options_parse(options, words, false))
		return false;
	if (options->command[0] || options->help) {
		fprintf(stderr,
			"perdure: PERDURE_OPTIONS: %s is no option for a program that already "
			"runs\n",
			options->help ? "--help" : options->command[0]);
		return false;
	}
	return true;
}

int command_watch(char **words)
{
	const char *text = getenv("PERDURE_OPTIONS");
	struct watch_answer answer = { 0 };
	struct result result = { .engine = "run" };
	char *command[2] = { 0 }, path[64];
	struct options options;
	struct session *session;
	const char *budget = NULL;
	double started = target_now();
	int channel, fd, status;
	bool waits;
	pid_t pid;

	if (!words[0] || !words[1] || !text)
		return EXIT_BAD_USAGE;
	channel = atoi(words[0]);
	pid = atoi(words[1]);
	fcntl(channel, F_SETFD, FD_CLOEXEC);
	status = parse_environment(&options, text) ? prepare(&options, &fd, &session)
						   : EXIT_BAD_USAGE;
	if (status == EXIT_BAD_USAGE &&
	    write(channel, WATCH_BAD_OPTIONS, sizeof(WATCH_BAD_OPTIONS)) < 0)
		return EXIT_CANNOT_WORK;
	if (status)
		return status;
	command[0] = program_of(pid);
	result.command = command;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), fd);
	if (write(channel, path, strlen(path)) < 0)
		return EXIT_CANNOT_WORK;
	waits = await_end(channel, pid, &options, &result, &budget);
	if (waits && others_alive(session, pid)) {
		/* A daemon: the program ends, its children go on, and are judged at their end. */
		if (write(channel, &answer, sizeof(answer)) < 0)
			return EXIT_CANNOT_WORK;
		waits = false;
		while (others_alive(session, pid))
			usleep(50000);
	}
	result.seconds = target_now() - started;
	/* A program without PM under a test runner is nothing to talk about. */
	if (session->pm_mapped)
		status = finish(&options, session, fd, &result, budget, pid);
	else
		listener_finish(session, options.max_time);
	answer.override_status = options.error_status && status == options.error_status;
	answer.status = options.error_status;
	if (waits && write(channel, &answer, sizeof(answer)) < 0)
		return EXIT_CANNOT_WORK;
	return status;
}
