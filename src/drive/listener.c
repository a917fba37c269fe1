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
#include <sys/wait.h>
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

static void hear(struct session *session, FILE *trace, bool plugins,
		 const struct perdure_event *event)
{
	if (trace)
		trace_print(trace, event, session);
	if (plugins)
		plugins_event(event);
}

/* ---- paths of an exploration: for each, plug-ins start anew, in a process of their own ---- */

static struct session *explored;
static const struct perdure_event *path_begin;

static void note_input(struct raw_finding *finding)
{
	struct raw_table *raw = &explored->raw;

	if (!finding->input)
		finding->input =
			plugins_witness() ? plugins_witness() : (uint32_t)path_begin->address;
	for (uint32_t i = 1; path_begin->detail && i <= raw->entries; i++)
		if (raw->entry[i].kind == finding->kind && raw->entry[i].stack == finding->stack)
			raw->entry[i].confirmed = 1;
}

static bool note_again(struct raw_finding *finding)
{
	note_input(finding);
	return !path_begin->detail;
}

static void hear_path(struct session *session, FILE *trace, bool plugins)
{
	struct perdure_event event;

	raw_on_new = note_input;
	raw_on_known = note_again;
	if (plugins && !plugins_start(session))
		_exit(1);
	while (stream_read(&session->stream, &event) && event.kind != STREAM_PATH_ENDS)
		hear(session, trace, plugins, &event);
	if (plugins)
		plugins_finish();
	if (trace)
		fflush(trace);
	_exit(0);
}

static bool is_needed(const struct session *session, uint32_t input)
{
	for (uint32_t i = 1; i <= session->raw.entries; i++)
		if (session->raw.entry[i].input == input)
			return true;
	return false;
}

/* A plug-in that dies does so for one path. */
static void listen_to_paths(struct session *session, FILE *trace, bool plugins)
{
	struct perdure_event event, rest;

	explored = session;
	while (stream_read(&session->stream, &event)) {
		uint64_t begin = session->stream.read;
		int status = 0;
		pid_t child;

		if (event.kind != STREAM_PATH_BEGINS)
			continue;
		path_begin = &event;
		child = fork();
		if (child == 0)
			hear_path(session, trace, plugins);
		while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
			;
		session->explore->query.heard++;
		if (child < 0 || status) {
			const char *name = plugins_at_work(session);
			char limit[SESSION_PATH];

			snprintf(limit, sizeof(limit), "the plug-in %.64s ended early on some path",
				 name ? name : "(unknown)");
			session_limit(session, getpid(), limit);
			while (session->stream.read >= begin &&
			       stream_read(&session->stream, &rest) &&
			       rest.kind != STREAM_PATH_ENDS)
				;
		}
		if (event.address && !event.detail &&
		    !is_needed(session, (uint32_t)event.address)) {
			session->explore->input[event.address - 1].used = false;
			if (event.address - 1 < session->explore->kept_from)
				session->explore->kept_from = (uint32_t)event.address - 1;
		}
	}
}

static void listen_to_all(struct session *session, FILE *trace, bool plugins)
{
	struct perdure_event event;

	/* Which of both it is was decided before anything is told. */
	while (!session->stream.on)
		usleep(1000);
	if (session->explores) {
		listen_to_paths(session, trace, plugins);
		say(trace && (ferror(trace) | (fflush(trace) == EOF)) ? TRACE_FAILED : HEARD_ALL);
		return;
	}
	if (plugins && !plugins_start(session)) {
		session->stream.on = 0;
		session->listening &= ~SESSION_STREAMS;
		say(NO_MEMORY);
		return;
	}
	while (stream_read(&session->stream, &event))
		hear(session, trace, plugins, &event);
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
