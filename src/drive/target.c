/* SPDX-License-Identifier: BSD-3-Clause */
#include "drive/target.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
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

/* ---- this process ---- */

static bool was_closed[3];
static struct sigaction inherited_pipe, inherited_size;

void target_prepare_process(void)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };

	for (int fd = 0; fd < 3; fd++) {
		was_closed[fd] = fcntl(fd, F_GETFD) < 0;
		if (was_closed[fd] && open("/dev/null", O_RDWR) != fd)
			abort();
	}
	sigaction(SIGPIPE, &ignore, &inherited_pipe);
	sigaction(SIGXFSZ, &ignore, &inherited_size);
}

bool target_stdout_closed(void)
{
	return was_closed[STDOUT_FILENO];
}

/* ---- processes ---- */

enum { SIGNALS = 3, FOREIGN = 64 };
static const int passed_on[SIGNALS] = { SIGINT, SIGTERM, SIGHUP };
static struct sigaction inherited[SIGNALS];
static volatile sig_atomic_t received[SIGNALS];

/* Children that this process had before it was perdure: a shell's, through exec. Not ours. */
static pid_t foreign[FOREIGN];
static unsigned foreigners;

static void on_signal(int signal)
{
	for (int i = 0; i < SIGNALS; i++)
		received[i] += passed_on[i] == signal;
}

double target_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec * 1e-9;
}

static bool is_foreign(pid_t pid)
{
	for (unsigned i = 0; i < foreigners; i++)
		if (foreign[i] == pid)
			return true;
	return false;
}

typedef void (*visit_fn)(pid_t pid, void *argument);

static void each_child_in(const char *path, visit_fn visit, void *argument);

/* Calls `visit` for each process below `parent`; every thread may have children. */
static void each_descendant(pid_t parent, visit_fn visit, void *argument)
{
	char path[64];
	struct dirent *entry;
	DIR *threads;

	snprintf(path, sizeof(path), "/proc/%d/task", parent);
	threads = opendir(path);
	if (!threads)
		return;
	while ((entry = readdir(threads))) {
		char children[128];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(children, sizeof(children), "/proc/%d/task/%.20s/children", parent,
			 entry->d_name);
		each_child_in(children, visit, argument);
	}
	closedir(threads);
}

static void each_child_in(const char *path, visit_fn visit, void *argument)
{
	char *text = NULL, *rest;
	size_t size = 0;
	FILE *file = fopen(path, "r");

	if (!file)
		return;
	if (getline(&text, &size, file) > 0)
		for (char *word = strtok_r(text, " \n", &rest); word;
		     word = strtok_r(NULL, " \n", &rest)) {
			pid_t pid = atoi(word);

			if (is_foreign(pid))
				continue;
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

void target_signal_below(int pid, int signal)
{
	each_descendant(pid, send_signal, &signal);
}

static void note_foreign(pid_t pid, void *unused)
{
	(void)unused;
	if (foreigners < FOREIGN)
		foreign[foreigners++] = pid;
}

static void count_one(pid_t pid, void *count)
{
	(void)pid;
	++*(unsigned *)count;
}

struct usage {
	long megabytes;       /* of all */
	double most_cpu_time; /* of one process and its reaped children */
};

/* The line of /proc/PID/stat behind the program's name, which may contain anything. */
static char *read_stat(pid_t pid, char *line, size_t size)
{
	char path[64], *after_name;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "r");
	if (!file)
		return NULL;
	after_name = fgets(line, size, file) ? strrchr(line, ')') : NULL;
	fclose(file);
	return after_name && after_name[1] ? after_name + 2 : NULL;
}

bool target_is_alive(int pid)
{
	char line[1024], *state = read_stat(pid, line, sizeof(line));

	return state && *state != 'Z' && *state != 'X';
}

static void add_usage(pid_t pid, void *argument)
{
	struct usage *usage = argument;
	unsigned long times[4] = { 0 };
	char line[1024], *stat = read_stat(pid, line, sizeof(line));
	long pages = 0;
	double seconds = 0;

	if (!stat ||
	    sscanf(stat,
		   "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %lu %lu %*d %*d %*d %*d %*u "
		   "%*u %ld",
		   &times[0], &times[1], &times[2], &times[3], &pages) != 5)
		return;
	for (int i = 0; i < 4; i++)
		seconds += times[i] / (double)sysconf(_SC_CLK_TCK);
	if (seconds > usage->most_cpu_time)
		usage->most_cpu_time = seconds;
	usage->megabytes += pages * (sysconf(_SC_PAGESIZE) / 1024) / 1024;
}

unsigned target_count_below(int pid)
{
	unsigned count = 0;

	each_descendant(pid, count_one, &count);
	return count;
}

void target_usage(int pid, double *seconds, long *megabytes)
{
	struct usage usage = { 0 };

	add_usage(pid, &usage);
	each_descendant(pid, add_usage, &usage);
	*seconds = usage.most_cpu_time;
	*megabytes = usage.megabytes;
}

const char *target_over_budget(int pid, const struct target_limits *limits, double started)
{
	struct usage usage = { 0 };

	if (limits->max_time > 0 && target_now() - started > limits->max_time)
		return "--max-time";
	if (!limits->max_memory && !limits->timeout)
		return NULL;
	if (pid != getpid())
		add_usage(pid, &usage);
	each_descendant(pid, add_usage, &usage);
	if (limits->timeout && usage.most_cpu_time > limits->timeout)
		return "--timeout";
	return limits->max_memory && usage.megabytes > limits->max_memory ? "--max-memory" : NULL;
}

/* A signal that was ignored before, as under nohup, stays ignored. */
static void take_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	for (int i = 0; i < SIGNALS; i++) {
		sigaction(passed_on[i], NULL, &inherited[i]);
		if (inherited[i].sa_handler != SIG_IGN)
			sigaction(passed_on[i], &action, NULL);
	}
}

static void ignore_signal(int signal)
{
	(void)signal;
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

/* ld.so splits the list at blanks and colons. */
static bool can_be_preloaded(const char *path)
{
	return !strpbrk(path, " :\t");
}

static bool set_environment(int session_fd, bool heap)
{
	char path[PATH_MAX], library[PATH_MAX + 64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), session_fd);
	setenv("PERDURE_SESSION", path, 1);
	unsetenv("PERDURE_OPTIONS");
	target_own_prefix(path, sizeof(path));
	if (!can_be_preloaded(path)) {
		/* Programs built with perdure-cc find the runtime by themselves. */
		if (heap)
			fprintf(stderr,
				"perdure: --pm-heap needs Perdure in a path without blanks: %s\n",
				path);
		return !heap;
	}
	snprintf(library, sizeof(library), "%s/lib/perdure/libperdure.so", path);
	prepend_preload(library);
	if (heap) {
		snprintf(library, sizeof(library), "%s/lib/perdure/libperdure-heap.so", path);
		prepend_preload(library);
	}
	return true;
}

/*
 * Equal addresses in all executions, where that is allowed. Libraries then lie right below the
 * largest stack that there may be, and patched code needs room above them, too: the runtime
 * restores the limit.
 */
static void fix_addresses(void)
{
	const rlim_t room = 3ul << 30;
	char text[32];
	struct rlimit limit;

	personality(ADDR_NO_RANDOMIZE);
	if (getrlimit(RLIMIT_STACK, &limit) < 0 || limit.rlim_cur >= room)
		return;
	snprintf(text, sizeof(text), "%lu", (unsigned long)limit.rlim_cur);
	limit.rlim_cur = room;
	if (setrlimit(RLIMIT_STACK, &limit) == 0)
		setenv("PERDURE_STACK_LIMIT", text, 1);
}

static bool is_static(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	bool found = false, elf = false;

	if (fd < 0)
		return false;
	if (pread(fd, &header, sizeof(header), 0) == sizeof(header) &&
	    memcmp(header.e_ident, ELFMAG, SELFMAG) == 0)
		elf = true;
	for (unsigned i = 0; elf && i < header.e_phnum && !found; i++)
		found = pread(fd, &segment, sizeof(segment),
			      header.e_phoff + i * sizeof(segment)) == sizeof(segment) &&
			segment.p_type == PT_INTERP;
	close(fd);
	return elf && !found;
}

const char *target_why_not(const char *program)
{
	char *path = target_find_program(program);
	bool is = path && is_static(path);

	free(path);
	return is ? "it is statically linked: link it dynamically"
		  : "statically linked, or set-user-id?";
}

char *target_own_file(const char *name)
{
	char own[PATH_MAX], *slash, *path;
	ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);

	if (length <= 0)
		return NULL;
	own[length] = 0;
	slash = strrchr(own, '/');
	*slash = 0;
	if (asprintf(&path, "%s/../lib/perdure/%s", own, name) < 0)
		abort();
	if (access(path, X_OK) == 0)
		return path;
	fprintf(stderr, "perdure: %s is missing: is Perdure installed as a whole?\n", path);
	free(path);
	return NULL;
}

static int redirected[3] = { -1, -1, -1 };

void target_redirect(int input, int output, int errors)
{
	redirected[STDIN_FILENO] = input;
	redirected[STDOUT_FILENO] = output;
	redirected[STDERR_FILENO] = errors;
}

/* As if nobody were between the shell and the program. */
static void become_target(void)
{
	for (int i = 0; i < SIGNALS; i++)
		sigaction(passed_on[i], &inherited[i], NULL);
	sigaction(SIGPIPE, &inherited_pipe, NULL);
	sigaction(SIGXFSZ, &inherited_size, NULL);
	for (int fd = 0; fd < 3; fd++)
		if (was_closed[fd])
			close(fd);
	for (int fd = 0; fd < 3; fd++)
		if (redirected[fd] >= 0 && redirected[fd] != fd)
			dup2(redirected[fd], fd);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getenv("PERDURE_ZYGOTE"))
		fix_addresses();
}

bool target_prepare(int session_fd, bool heap)
{
	struct sigaction child_action = { .sa_handler = ignore_signal };

	each_descendant(getpid(), note_foreign, NULL);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	take_signals();
	sigaction(SIGCHLD, &child_action, NULL);
	return set_environment(session_fd, heap);
}

static pid_t start(const char *program, char **command)
{
	int report[2], error = 0;
	pid_t child;

	if (pipe2(report, O_CLOEXEC) < 0)
		return -1;
	child = fork();
	if (child == 0) {
		become_target();
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

static const char *const signal_budgets[SIGNALS] = { "Ctrl-C", "SIGTERM", "SIGHUP" };

/* The terminal sends Ctrl-C to the program as well; the second signal is meant seriously. */
static void pass_signals_on(struct target_end *end, pid_t main_process, bool main_ended,
			    bool *kill_all)
{
	static int seen[SIGNALS];
	static int total;

	for (int i = 0; i < SIGNALS; i++) {
		if (received[i] == seen[i])
			continue;
		seen[i] = received[i];
		end->budget = signal_budgets[i];
		if (total++ || (main_ended && i == 0))
			*kill_all = true;
		else if (main_ended)
			target_signal_below(getpid(), passed_on[i]);
		else if (i != 0)
			kill(main_process, passed_on[i]);
	}
}

static void wait_for_all(pid_t main_process, const struct target_limits *limits,
			 const struct target_company *company, struct target_end *end)
{
	struct timespec tick = { .tv_nsec = TICK_MS * 1000000 };
	bool main_ended = false, told = false, kill_all = false;
	double started = target_now(), ended = 0;

	for (;;) {
		unsigned left = 0;
		int status;
		pid_t pid = waitpid(-1, &status, WNOHANG);

		if (pid > 0 && company)
			company->ended(company->context, pid, status);
		if (pid == main_process) {
			main_ended = true;
			ended = target_now();
			note_end(end, status);
		}
		if (pid > 0)
			continue;
		if (main_ended) {
			each_descendant(getpid(), count_one, &left);
			if (!left)
				return;
		}
		if (company && !main_ended)
			company->tick(company->context, main_process);
		pass_signals_on(end, main_process, main_ended, &kill_all);
		if (!kill_all && !end->budget &&
		    (end->budget = target_over_budget(getpid(), limits, started)))
			kill_all = true;
		if (kill_all) /* each tick: new ones may have been born meanwhile */
			target_signal_below(getpid(), SIGKILL);
		if (main_ended && !told && target_now() - ended > 2 && isatty(STDERR_FILENO)) {
			fprintf(stderr, "perdure: the program has ended; waiting for processes it "
					"left behind (Ctrl-C ends them)\n");
			told = true;
		}
		nanosleep(&tick, NULL); /* SIGCHLD ends it early */
	}
}

int target_start(char **command)
{
	char *program = target_find_program(command[0]);
	pid_t child = program ? start(program, command) : -1;

	if (child < 0)
		fprintf(stderr, "perdure: cannot run %s: %s\n", command[0],
			errno == ENOEXEC ? "not an executable file (a script needs a #! line)"
					 : strerror(errno));
	free(program);
	return child;
}

bool target_make_directory(char *path, size_t size)
{
	const char *temporary = getenv("TMPDIR");

	snprintf(path, size, "%s/perdure-XXXXXX", temporary && *temporary ? temporary : P_tmpdir);
	return mkdtemp(path);
}

const char *target_interrupted(void)
{
	for (int i = 0; i < SIGNALS; i++)
		if (received[i])
			return signal_budgets[i];
	return NULL;
}

bool target_run(char **command, int session_fd, bool heap, const struct target_limits *limits,
		struct target_end *end)
{
	pid_t child;

	*end = (struct target_end){ 0 };
	if (!target_prepare(session_fd, heap))
		return false;
	child = target_start(command);
	if (child < 0)
		return false;
	wait_for_all(child, limits, NULL, end);
	return true;
}

bool target_run_again(char **command, const struct target_limits *limits,
		      const struct target_company *company, struct target_end *end)
{
	pid_t child = target_start(command);

	*end = (struct target_end){ 0 };
	if (child < 0)
		return false;
	wait_for_all(child, limits, company, end);
	return true;
}
