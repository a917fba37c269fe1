/* SPDX-License-Identifier: BSD-3-Clause */
#include "drive/target.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TICK_MS = 50 };

/* ---- paths ---- */

bool target_own_prefix(char *path, size_t size)
{
	ssize_t length = readlink("/proc/self/exe", path, size - 1);

	if (length <= 0) {
		fprintf(stderr, "perdure: cannot find my own directory: %s (is /proc mounted?)\n",
			strerror(errno));
		return false;
	}
	path[length] = 0;
	for (int i = 0; i < 2; i++) {
		char *slash = strrchr(path, '/');

		if (slash)
			*slash = 0;
	}
	return true;
}

static bool is_program(const char *path)
{
	struct stat status;

	if (stat(path, &status) < 0)
		return false;
	if (S_ISDIR(status.st_mode)) {
		errno = EISDIR;
		return false;
	}
	return access(path, X_OK) == 0;
}

char *target_find_program(const char *name)
{
	const char *list = getenv("PATH");
	char *copy, *rest, *path = NULL;

	if (strchr(name, '/'))
		return is_program(name) ? strdup(name) : NULL;
	copy = strdup(list ? list : "/usr/bin:/bin");
	for (char *directory = strtok_r(copy, ":", &rest); directory;
	     directory = strtok_r(NULL, ":", &rest)) {
		if (asprintf(&path, "%s/%s", directory, name) < 0)
			abort();
		if (is_program(path)) {
			free(copy);
			return path;
		}
		free(path);
	}
	free(copy);
	errno = ENOENT;
	return NULL;
}

/* ---- processes ---- */

static volatile sig_atomic_t interrupts, terminations;

static void on_signal(int signal)
{
	if (signal == SIGINT)
		interrupts++;
	else
		terminations++;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec * 1e-9;
}

/* Calls `visit` for each process below `parent`; deepest last. */
static void each_descendant(pid_t parent, void (*visit)(pid_t pid, void *), void *argument)
{
	char path[64], *text = NULL, *rest;
	size_t size = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", parent, parent);
	file = fopen(path, "r");
	if (!file)
		return;
	if (getline(&text, &size, file) > 0)
		for (char *word = strtok_r(text, " \n", &rest); word;
		     word = strtok_r(NULL, " \n", &rest)) {
			pid_t pid = atoi(word);

			visit(pid, argument);
			each_descendant(pid, visit, argument);
		}
	free(text);
	fclose(file);
}

static void send_signal(pid_t pid, void *signal)
{
	kill(pid, *(int *)signal);
}

static void signal_all(int signal)
{
	each_descendant(getpid(), send_signal, &signal);
}

static void add_memory(pid_t pid, void *total)
{
	char path[64];
	long pages = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/statm", pid);
	file = fopen(path, "r");
	if (!file)
		return;
	if (fscanf(file, "%*d %ld", &pages) == 1)
		*(long *)total += pages * (sysconf(_SC_PAGESIZE) / 1024) / 1024;
	fclose(file);
}

static void limit_cpu(long seconds)
{
	struct rlimit limit = { .rlim_cur = seconds, .rlim_max = seconds + 1 };

	if (seconds)
		setrlimit(RLIMIT_CPU, &limit);
}

static void prepend_preload(const char *library)
{
	const char *old = getenv("LD_PRELOAD");
	char *value;

	if (asprintf(&value, "%s%s%s", library, old && *old ? ":" : "", old ? old : "") < 0)
		abort();
	setenv("LD_PRELOAD", value, 1);
	free(value);
}

static void set_environment(int session_fd, bool heap)
{
	char path[PATH_MAX], library[PATH_MAX + 64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), session_fd);
	setenv("PERDURE_SESSION", path, 1);
	unsetenv("PERDURE_OPTIONS");
	target_own_prefix(path, sizeof(path));
	snprintf(library, sizeof(library), "%s/lib/perdure/libperdure.so", path);
	prepend_preload(library);
	if (heap) {
		snprintf(library, sizeof(library), "%s/lib/perdure/libperdure-heap.so", path);
		prepend_preload(library);
	}
}

static pid_t start(const char *program, char **command, long timeout)
{
	int report[2], error = 0;
	pid_t child;

	if (pipe2(report, O_CLOEXEC) < 0)
		return -1;
	child = fork();
	if (child == 0) {
		signal(SIGINT, SIG_DFL);
		signal(SIGTERM, SIG_DFL);
		signal(SIGHUP, SIG_DFL);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		limit_cpu(timeout);
		execv(program, command);
		error = errno;
		_exit(write(report[1], &error, sizeof(error)) == sizeof(error) ? 127 : 126);
	}
	close(report[1]);
	if (child > 0 && read(report[0], &error, sizeof(error)) == sizeof(error)) {
		waitpid(child, NULL, 0);
		errno = error;
		child = -1;
	}
	close(report[0]);
	return child;
}

static void note_end(struct target_end *end, int status)
{
	end->exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	end->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* Which budget is used up, if any. */
static const char *over_budget(const struct target_limits *limits, double started)
{
	long memory = 0;

	if (limits->max_time > 0 && now() - started > limits->max_time)
		return "--max-time";
	if (!limits->max_memory)
		return NULL;
	each_descendant(getpid(), add_memory, &memory);
	return memory > limits->max_memory ? "--max-memory" : NULL;
}

static void pass_signals_on(struct target_end *end, pid_t main_process, bool main_ended)
{
	static int seen_interrupts, seen_terminations;

	/* The terminal sends Ctrl-C to the program as well; the second one is meant seriously. */
	if (interrupts > seen_interrupts) {
		seen_interrupts = interrupts;
		end->interrupted = true;
		if (seen_interrupts > 1 || main_ended)
			signal_all(SIGKILL);
	}
	if (terminations > seen_terminations) {
		end->interrupted = true;
		if (seen_terminations++)
			signal_all(SIGKILL);
		else if (main_ended)
			signal_all(SIGTERM);
		else
			kill(main_process, SIGTERM);
	}
}

static void wait_for_all(pid_t main_process, const struct target_limits *limits,
			 struct target_end *end)
{
	struct timespec tick = { .tv_nsec = TICK_MS * 1000000 };
	bool main_ended = false, told = false;
	double started = now(), ended = 0;

	for (;;) {
		int status;
		pid_t pid = waitpid(-1, &status, WNOHANG);

		if (pid < 0 && errno == ECHILD)
			return;
		if (pid == main_process) {
			main_ended = true;
			ended = now();
			note_end(end, status);
		}
		if (pid > 0)
			continue;
		pass_signals_on(end, main_process, main_ended);
		if (!end->budget && (end->budget = over_budget(limits, started)))
			signal_all(SIGKILL);
		if (main_ended && !told && now() - ended > 2 && isatty(STDERR_FILENO)) {
			fprintf(stderr, "perdure: the program has ended; waiting for processes it "
					"left behind (Ctrl-C ends them)\n");
			told = true;
		}
		nanosleep(&tick, NULL); /* SIGCHLD ends it early */
	}
}

static void ignore_signal(int signal)
{
	(void)signal;
}

bool target_run(char **command, int session_fd, bool heap, const struct target_limits *limits,
		struct target_end *end)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct sigaction child_action = { .sa_handler = ignore_signal };
	char *program = target_find_program(command[0]);
	pid_t child = -1;

	*end = (struct target_end){ 0 };
	if (program) {
		prctl(PR_SET_CHILD_SUBREAPER, 1);
		sigaction(SIGINT, &action, NULL);
		sigaction(SIGTERM, &action, NULL);
		sigaction(SIGHUP, &action, NULL);
		sigaction(SIGCHLD, &child_action, NULL);
		set_environment(session_fd, heap);
		child = start(program, command, limits->timeout);
	}
	if (child < 0) {
		fprintf(stderr, "perdure: cannot run %s: %s\n", command[0],
			errno == ENOEXEC ? "not an executable file (a script needs a #! line)"
					 : strerror(errno));
		free(program);
		return false;
	}
	free(program);
	wait_for_all(child, limits, end);
	if (limits->timeout && (end->signal == SIGXCPU || end->signal == SIGKILL) && !end->budget)
		end->budget = end->signal == SIGXCPU ? "--timeout" : NULL;
	return true;
}
