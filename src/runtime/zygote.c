/* SPDX-License-Identifier: BSD-3-Clause */
/* The target as a zygote: see session/zygote.h. */
#include "session/zygote.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/execution.h"

static void say(int channel, enum zygote_word word, int32_t value, int32_t other)
{
	struct zygote_message message = { .word = word, .value = value, .other = other };

	if (REAL(write)(channel, &message, sizeof(message)) != sizeof(message))
		_exit(0); /* the command is gone */
}

static void redirect(int32_t from, int to, int flags)
{
	int command = runtime_session->executions.command, fd;
	char path[64];

	if (from < 0)
		return;
	REAL(snprintf)(path, sizeof(path), "/proc/%d/fd/%d", command, from);
	fd = REAL(open)(path, flags);
	if (fd < 0)
		_exit(125);
	if (fd != to) {
		dup2(fd, to);
		close(fd);
	}
}

static pid_t zygote;

/* A recovery that is after its parent's life must not end those that execute it. */
PUBLIC int kill(pid_t pid, int signal)
{
	if (runtime_recovers &&
	    (pid == zygote || pid == -1 || pid == runtime_session->executions.command))
		return 0;
	return REAL(kill)(pid, signal);
}

static void become_execution(uint32_t number, pid_t group)
{
	const struct execution *execution = &runtime_session->executions.execution[number];
	char text[16];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_CHILD_SUBREAPER, 0);
	/* The terminal's signals are for the program, too, but not for recoveries. */
	setpgid(0, execution->stage ? 0 : group);
	redirect(execution->input, STDIN_FILENO, O_RDONLY);
	redirect(execution->output, STDOUT_FILENO, O_WRONLY | O_APPEND);
	redirect(execution->errors, STDERR_FILENO, O_WRONLY | O_APPEND);
	REAL(snprintf)(text, sizeof(text), "%u", number);
	setenv(EXECUTION_VARIABLE, text, 1);
	runtime_session->image[runtime_image].pid = getpid();
	execution_join(number);
	execution_use_heap();
}

/* Returns in each execution. */
static void serve(int channel, pid_t group)
{
	struct zygote_message message;
	siginfo_t info;
	int status;
	bool left;

	zygote = getpid();
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	say(channel, ZYGOTE_READY, runtime_involved, getpid());
	while (REAL(read)(channel, &message, sizeof(message)) == sizeof(message)) {
		pid_t child;

		if (message.word == ZYGOTE_REAP) {
			while (waitpid(-1, &status, 0) > 0 || errno == EINTR)
				;
			say(channel, ZYGOTE_REAPED, 0, 0);
			continue;
		}
		child = REAL(fork)();
		if (child == 0) {
			close(channel);
			become_execution(message.execution, group);
			return;
		}
		say(channel, ZYGOTE_STARTED, child, errno);
		if (child < 0)
			continue;
		while (waitpid(child, &status, 0) < 0 && errno == EINTR)
			;
		left = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
		say(channel, ZYGOTE_ENDED, status, left);
	}
	_exit(0);
}

/* True in a new process that is not below this one, but the command's own. */
static bool fork_sibling(void)
{
	pid_t between = REAL(fork)();

	if (between == 0) {
		between = getpid();
		if (REAL(fork)() != 0)
			_exit(0);
		while (getppid() == between)
			sched_yield();
		return true;
	}
	while (waitpid(between, NULL, 0) < 0 && errno == EINTR)
		;
	return false;
}

static void take_tunable_away(void)
{
	const char *tunables = getenv("GLIBC_TUNABLES");
	size_t length = tunables ? plain_length(tunables) : 0, own = sizeof(ZYGOTE_TUNABLE) - 1;
	char *text;

	if (length < own || REAL(strcmp)(tunables + length - own, ZYGOTE_TUNABLE) != 0)
		return;
	if (length == own) {
		unsetenv("GLIBC_TUNABLES");
		return;
	}
	text = REAL(strndup)(tunables, length - own - 1);
	if (text)
		setenv("GLIBC_TUNABLES", text, 1);
	free(text);
}

/* The limit was raised for the layout of memory only; the size of threads' stacks comes from it. */
static void restore_stack_limit(void)
{
	const char *text = getenv(STACK_LIMIT_VARIABLE);
	pthread_attr_t attributes;
	struct rlimit limit;

	if (!text || getrlimit(RLIMIT_STACK, &limit) < 0)
		return;
	limit.rlim_cur = strtoul(text, NULL, 10);
	setrlimit(RLIMIT_STACK, &limit);
	unsetenv(STACK_LIMIT_VARIABLE);
	if (pthread_getattr_default_np(&attributes) == 0) {
		pthread_attr_setstacksize(&attributes, limit.rlim_cur);
		pthread_setattr_default_np(&attributes);
		pthread_attr_destroy(&attributes);
	}
}

void zygote_serve(void)
{
	const char *text = getenv(ZYGOTE_VARIABLE);
	pid_t group = getpgrp();
	char *end;

	if (!text || !runtime_session)
		return;
	take_tunable_away();
	restore_stack_limit();
	runtime_is_zygote = true;
	setpgid(0, 0);
	for (;;) { /* one zygote a channel, all with the same memory */
		int channel = strtol(text, &end, 10);

		if (*end != ',') {
			unsetenv(ZYGOTE_VARIABLE);
			serve(channel, group);
			break;
		}
		if (fork_sibling()) {
			for (const char *rest = end + 1; *rest; rest = end + (*end == ','))
				close(strtol(rest, &end, 10));
			unsetenv(ZYGOTE_VARIABLE);
			serve(channel, group);
			break;
		}
		close(channel);
		text = end + 1;
	}
	runtime_is_zygote = false;
}
