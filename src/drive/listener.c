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
enum word { HEARD_ALL = 'h', TRACE_FAILED = 't', NO_MEMORY = 'm', PLUGIN_CRASHED = 'p' };

static pid_t process;
static int channel = -1;
static int answer; /* the child's end */

static void say(char word, const char *name)
{
	char text[128] = { word };

	if (name)
		strncpy(text + 1, name, sizeof(text) - 2);
	if (write(answer, text, sizeof(text)) < 0)
		_exit(1);
}

static void on_crash(int signal)
{
	(void)signal;
	say(PLUGIN_CRASHED, plugins_current());
	_exit(1);
}

static void prepare_signals(bool plugins)
{
	static const int crashes[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };

	signal(SIGINT, SIG_IGN); /* the command decides when it is over */
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; plugins && i < sizeof(crashes) / sizeof(*crashes); i++)
		signal(crashes[i], on_crash);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static void listen_to_all(struct session *session, FILE *trace, bool plugins)
{
	struct perdure_event event;

	if (plugins && !plugins_start(session)) {
		session->stream.on = 0;
		say(NO_MEMORY, NULL);
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
	say(trace && (ferror(trace) | (fflush(trace) == EOF)) ? TRACE_FAILED : HEARD_ALL, NULL);
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
		prepare_signals(plugins);
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
	session->options.loads = true;
	return true;
}

/* The process's last words; empty if it was killed. A signal to the command ends the wait. */
static void await_words(char *text, size_t size)
{
	struct pollfd event = { .fd = channel, .events = POLLIN };

	memset(text, 0, size);
	if (poll(&event, 1, -1) < 0 && errno == EINTR)
		kill(process, SIGKILL);
	if (read(channel, text, size - 1) < 0)
		text[0] = 0;
	close(channel);
	channel = -1;
}

bool listener_finish(struct session *session)
{
	char words[128], limit[SESSION_PATH];

	if (channel < 0)
		return true;
	__atomic_store_n(&session->stream.finished, 1, __ATOMIC_RELEASE);
	await_words(words, sizeof(words));
	switch (words[0]) {
	case HEARD_ALL:
		return true;
	case TRACE_FAILED:
		return false;
	case NO_MEMORY:
		session_limit(session, getpid(),
			      "plug-ins were not run: not enough address space for their model");
		return true;
	case PLUGIN_CRASHED:
		snprintf(limit, sizeof(limit), "the plug-in %.64s crashed: it heard no more events",
			 words[1] ? words + 1 : "(unknown)");
		session_limit(session, getpid(), limit);
		return true;
	default:
		session_limit(session, getpid(),
			      "plug-ins were ended before they heard all events");
		return true;
	}
}
