/* SPDX-License-Identifier: BSD-3-Clause */
#include "drive/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "drive/plugins.h"
#include "report/trace.h"

/* What the process says at its end; no word at all means that it was killed. */
enum word { HEARD_ALL = 'h', TRACE_FAILED = 't', NO_MEMORY = 'm' };

static pid_t process;
static int channel = -1;
static int answer; /* the child's end */

static void say(char word)
{
	if (write(answer, &word, 1) < 0)
		_exit(1);
}

static void prepare_signals(void)
{
	signal(SIGINT, SIG_IGN); /* the command decides when it is over */
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static void listen_to_all(struct session *session, FILE *trace, bool plugins)
{
	struct perdure_event event;

	if (plugins && !plugins_start(session)) {
		session->stream.on = 0;
		session->listening &= ~SESSION_STREAMS;
		say(NO_MEMORY);
		return;
	}
	while (stream_read(&session->stream, &event)) {
		if (trace)
			trace_print(trace, &event, session);
		if (plugins)
			plugins_event(&event);
	}
	if (plugins)
		plugins_finish();
	say(trace && (ferror(trace) | (fflush(trace) == EOF)) ? TRACE_FAILED : HEARD_ALL);
}

bool listener_start(struct session *session, const char *trace, bool plugins)
{
	FILE *file = NULL;
	int ends[2];

	if (!trace && !plugins)
		return true;
	if (trace) {
		file = strcmp(trace, "-") == 0 ? stdout : fopen(trace, "we");
		if (!file) {
			fprintf(stderr, "perdure: cannot write %s: %s\n", trace, strerror(errno));
			return false;
		}
	}
	if (pipe2(ends, O_CLOEXEC) < 0 || (process = fork()) < 0) {
		fprintf(stderr, "perdure: cannot start listening: %s\n", strerror(errno));
		return false;
	}
	if (process == 0) {
		close(ends[0]);
		answer = ends[1];
		prepare_signals();
		listen_to_all(session, file, plugins);
		fflush(NULL);
		_exit(0);
	}
	close(ends[1]);
	if (file && file != stdout)
		fclose(file);
	channel = ends[0];
	session->stream.reader = process;
	session->stream.on = 1;
	session->listening |= SESSION_STREAMS;
	return true;
}

/* The process's last word; 0 if it ended without one. A signal to the command ends the wait. */
static char await_word(double seconds)
{
	struct pollfd event = { .fd = channel, .events = POLLIN };
	char word = 0;
	int ready = poll(&event, 1, seconds > 0 ? (int)(seconds * 1000) + 1 : -1);

	if (ready == 0 || (ready < 0 && errno == EINTR))
		kill(process, SIGKILL);
	if (read(channel, &word, 1) < 0)
		word = 0;
	close(channel);
	channel = -1;
	return word;
}

enum listener_end listener_finish(struct session *session, double seconds)
{
	const char *name;
	char limit[SESSION_PATH];

	if (channel < 0)
		return LISTENER_HEARD_ALL;
	__atomic_store_n(&session->stream.finished, 1, __ATOMIC_RELEASE);
	switch (await_word(seconds)) {
	case HEARD_ALL:
		return LISTENER_HEARD_ALL;
	case TRACE_FAILED:
		return LISTENER_NO_TRACE;
	case NO_MEMORY:
		session_limit(session, getpid(),
			      "plug-ins were not run: not enough address space for their model");
		return LISTENER_CRASHED;
	default:
		name = plugins_at_work(session);
		snprintf(limit, sizeof(limit), "%s%.64s ended early: not all events were heard",
			 name ? "the plug-in " : "the process that listens", name ? name : "");
		session_limit(session, getpid(), limit);
		return LISTENER_CRASHED;
	}
}
