/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PERDURE_OPTIONS: a program started by someone else's test runner, without the perdure command
 * around it. The runtime starts a watcher, `perdure --watch`, as nobody's child. It owns the
 * session and writes the report: when this process says that it ends, or when it is gone.
 */
#include "runtime/execution.h"
#include "symbolic/symbolic.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session/watch.h"

static int channel = -1;
static pid_t watched;
static unsigned long channel_inode; /* the program may close it and use its number again */

static bool find_self(char own[PATH_MAX])
{
	Dl_info info;

	return dladdr((void *)find_self, &info) && realpath(info.dli_fname, own);
}

void watch_restart_with_heap(char **argv)
{
	char own[PATH_MAX], list[2 * PATH_MAX + 64], *slash;
	const char *preload = getenv("LD_PRELOAD");

	if (!find_self(own) || strpbrk(own, " :") || !(slash = strrchr(own, '/')))
		return;
	*slash = 0;
	snprintf(list, sizeof(list), "%s/libperdure-heap.so%s%s", own, preload ? ":" : "",
		 preload ? preload : "");
	setenv("LD_PRELOAD", list, 1);
	execv("/proc/self/exe", argv);
}

/* bin/perdure of the tree that this library, lib/perdure/libperdure.so, belongs to. */
static bool find_command(char *path, size_t size)
{
	char own[PATH_MAX];

	if (!find_self(own))
		return false;
	for (int i = 0; i < 3; i++) {
		char *slash = strrchr(own, '/');

		if (!slash)
			return false;
		*slash = 0;
	}
	return (size_t)snprintf(path, size, "%s/bin/perdure", own) < size &&
	       access(path, X_OK) == 0;
}

static void spawn(const char *command, int its_end, pid_t target)
{
	char fd[16], pid[16];
	pid_t child = fork();

	if (child == 0) {
		if (fork() > 0)
			_exit(0);
		setsid(); /* a signal to the program's group is not for the watcher */
		snprintf(fd, sizeof(fd), "%d", its_end);
		snprintf(pid, sizeof(pid), "%d", target);
		fcntl(its_end, F_SETFD, 0);
		execl(command, command, "--watch", fd, pid, (char *)NULL);
		_exit(127);
	}
	if (child > 0)
		waitpid(child, NULL, 0);
}

static unsigned long inode_of(int fd)
{
	struct stat status;

	return fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode) ? status.st_ino : 0;
}

/* The watcher's first word is the path of the session. */
static bool receive_path(char *path, size_t size)
{
	ssize_t length = syscall(SYS_read, channel, path, size - 1);

	path[length > 0 ? length : 0] = 0;
	return length > 0 && path[0] == '/';
}

bool watch_start(const char *options, char *session_path, size_t size)
{
	char command[PATH_MAX], number[64];
	int ends[2];

	(void)options; /* the watcher finds them in the environment, too */
	if (!find_command(command, sizeof(command))) {
		message("PERDURE_OPTIONS is set, but the perdure command is not where it belongs, "
			"beside this runtime; running without analysis");
		return false;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return false;
	spawn(command, ends[1], getpid());
	close(ends[1]);
	channel = fcntl(ends[0], F_DUPFD, 900); /* out of the way of the program's own */
	close(ends[0]);
	watched = getpid();
	if (!receive_path(session_path, size)) {
		/* The watcher has said why. A test that runs unchecked would look like a success.
		 */
		if (strcmp(session_path, WATCH_BAD_OPTIONS) == 0)
			syscall(SYS_exit_group, 2);
		close(channel);
		channel = -1;
		return false;
	}
	/* An exec'd program and children go on in the same session. */
	setenv("PERDURE_SESSION", session_path, 1);
	channel_inode = inode_of(channel);
	snprintf(number, sizeof(number), "%d:%d:%lu", channel, watched, channel_inode);
	setenv("PERDURE_WATCH", number, 1);
	return true;
}

/* After exec: the channel is still open under its number. */
static bool find_channel(void)
{
	const char *text = getenv("PERDURE_WATCH");
	int fd, pid;
	unsigned long inode;

	if (channel < 0 && text && sscanf(text, "%d:%d:%lu", &fd, &pid, &inode) == 3 &&
	    pid == getpid()) {
		channel = fd;
		watched = pid;
		channel_inode = inode;
	}
	return channel >= 0 && watched == getpid() && inode_of(channel) == channel_inode;
}

/* Lets the watcher write its report now; returns the status to end with. */
static int end(int status)
{
	struct watch_answer answer = { 0 };
	struct watch_request request = { .status = status };

	if (!find_channel())
		return status;
	if (syscall(SYS_write, channel, &request, sizeof(request)) == sizeof(request) &&
	    syscall(SYS_read, channel, &answer, sizeof(answer)) == sizeof(answer) &&
	    answer.override_status)
		status = answer.status;
	close(channel);
	channel = -1;
	return status;
}

static void at_exit(int status, void *unused)
{
	int wanted;

	(void)unused;
	fflush(NULL);
	wanted = end(status);
	if (wanted != status)
		syscall(SYS_exit_group, wanted);
}

/* Registered first, so it runs last: after the program's own handlers. */
__attribute__((constructor(103))) static void register_end(void)
{
	if (runtime_session && getenv("PERDURE_WATCH"))
		on_exit(at_exit, NULL);
}

PUBLIC void _exit(int status)
{
	symptoms_exit(status, FRAME);
	states_end();
	syscall(SYS_exit_group, end(status));
	__builtin_unreachable();
}

PUBLIC void _Exit(int status)
{
	symptoms_exit(status, FRAME);
	states_end();
	syscall(SYS_exit_group, end(status));
	__builtin_unreachable();
}
