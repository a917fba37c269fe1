/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that somebody else started, with PERDURE_OPTIONS in its environment. */
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/analysis.h"
#include "cli/commands.h"
#include "drive/listener.h"
#include "drive/target.h"
#include "session/watch.h"

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
	if (options_parse(options, words, OPTIONS_RUN | OPTIONS_NO_PROGRAM))
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
	command[0] = program_of(pid);
	status = EXIT_BAD_USAGE;
	if (parse_environment(&options, text)) {
		options.command = command;
		status = analysis_prepare(&options, &fd, &session);
	}
	if (status == EXIT_BAD_USAGE &&
	    write(channel, WATCH_BAD_OPTIONS, sizeof(WATCH_BAD_OPTIONS)) < 0)
		return EXIT_CANNOT_WORK;
	if (status)
		return status;
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
		status = analysis_finish(&options, session, fd, &result, budget, pid);
	else
		listener_finish(session, options.max_time);
	answer.override_status = options.error_status && status == options.error_status;
	answer.status = options.error_status;
	if (waits && write(channel, &answer, sizeof(answer)) < 0)
		return EXIT_CANNOT_WORK;
	return status;
}
