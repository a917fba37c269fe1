/* SPDX-License-Identifier: BSD-3-Clause */
#include "drive/explore.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "drive/steer.h"
#include "drive/zygotes.h"

enum { TICK_MS = 20, RESTARTS = 100, GRACE = 10 /* seconds */ };

struct solvers {
	pid_t pid[EXPLORE_SOLVERS];
	unsigned count, restarts;
	char *program, session[64];
};

static void start_solver(struct solvers *solvers, unsigned number, const struct explore *explore)
{
	char offset[32];

	snprintf(offset, sizeof(offset), "%#llx",
		 (unsigned long long)((uintptr_t)&explore->desk[number] - SESSION_BASE));
	solvers->pid[number] = fork();
	if (solvers->pid[number] == 0) {
		signal(SIGINT, SIG_IGN);
		unsetenv("LD_PRELOAD");
		execl(solvers->program, "perdure-solver", solvers->session, offset, NULL);
		_exit(127);
	}
}

static bool start_solvers(struct solvers *solvers, const struct explore_run *run)
{
	struct explore *explore = run->session->explore;

	solvers->program = target_own_file("perdure-solver");
	if (!solvers->program)
		return false;
	snprintf(solvers->session, sizeof(solvers->session), "/proc/%d/fd/%d", getpid(),
		 run->session_fd);
	solvers->count = explore->settings.jobs;
	for (unsigned i = 0; i < solvers->count; i++)
		start_solver(solvers, i, explore);
	return true;
}

/* One that has died is replaced; its question counts as one that could not be answered. */
static bool replace_solver(struct solvers *solvers, pid_t pid, struct explore *explore)
{
	for (unsigned i = 0; i < solvers->count; i++) {
		if (solvers->pid[i] != pid)
			continue;
		explore->desk[i].answer = EXPLORE_UNKNOWN;
		explore->desk[i].answered = explore->desk[i].asked;
		if (solvers->restarts++ < RESTARTS)
			start_solver(solvers, i, explore);
		return true;
	}
	return false;
}

/* ---- watching ---- */

static void show(const struct explore *explore, const struct session *session, double seconds)
{
	const struct explore_counts *counts = &explore->counts;
	double share =
		counts->query_ns / 1e9 / (seconds > 0 ? seconds : 1) / explore->settings.jobs;

	fprintf(stderr,
		"\r\033[Kperdure: %lu paths (%.0f/s), %u states wait, %u of about %u places that change PM, "
		"solver %.0f %%, %u findings",
		counts->paths, counts->paths / (seconds > 0 ? seconds : 1), counts->waiting,
		explore->places, explore->pm_instructions, 100 * share, session->raw.entries);
	fflush(stderr);
}

/* One path alone takes too much. */
static void end_running(struct explore *explore)
{
	for (uint32_t i = 0; i < explore->states_used; i++)
		if (explore->state[i].status == EXPLORE_RUNNING && explore->state[i].pid > 0) {
			explore->state[i].killed = 1;
			kill(explore->state[i].pid, SIGKILL);
			explore->counts.too_large++;
		}
}

/* States beyond the bound are kept as inputs from now on. */
static void bound_memory(const struct explore_run *run, struct explore *explore)
{
	long megabytes, most = run->max_memory;
	double unused;

	if (!most)
		most = sysconf(_SC_PHYS_PAGES) / 2 * (sysconf(_SC_PAGESIZE) / 1024) / 1024;
	target_usage(explore->root, &unused, &megabytes);
	if (megabytes > most * 12 / 10)
		end_running(explore);
	if (megabytes > most * 8 / 10 && explore->settings.live > 4)
		explore->settings.live =
			explore->counts.live * 3 / 4 > 4 ? explore->counts.live * 3 / 4 : 4;
}

static const char *over_budget(const struct explore_run *run, double started)
{
	if (target_interrupted())
		return target_interrupted();
	return run->max_time > 0 && target_now() - started > run->max_time ? "--max-time" : NULL;
}

static void watch(const struct explore_run *run, struct solvers *solvers, pid_t root,
		  struct target_end *end)
{
	struct timespec tick = { .tv_nsec = TICK_MS * 1000000 };
	struct explore *explore = run->session->explore;
	double started = target_now(), looked = started, stopped = 0;

	for (;;) {
		int status;
		pid_t pid;

		if (explore->root && !explore->steered)
			steer_find(run->steer, run->session);
		pid = waitpid(-1, &status, WNOHANG);
		if (pid == root) {
			end->exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
			end->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
			break;
		}
		if (pid > 0) {
			replace_solver(solvers, pid, explore);
			continue;
		}
		/* Then it has some time to run the inputs of findings once more. */
		if (!end->budget && (end->budget = over_budget(run, started))) {
			explore->stopped = 1;
			stopped = target_now();
			kill(root, SIGALRM);
		}
		if (end->budget && target_now() - stopped > GRACE)
			break;
		if (target_now() - looked > 0.25) {
			looked = target_now();
			bound_memory(run, explore);
			if (run->shows_progress)
				show(explore, run->session, looked - started);
		}
		nanosleep(&tick, NULL); /* SIGCHLD ends it early */
	}
	explore->stopped = 1;
	if (run->shows_progress)
		fprintf(stderr, "\r\033[K");
}

bool explore_run(const struct explore_run *run, struct target_end *end)
{
	struct solvers solvers = { 0 };
	pid_t root;

	*end = (struct target_end){ 0 };
	if (!start_solvers(&solvers, run))
		return false;
	root = target_start(run->command);
	if (root > 0)
		watch(run, &solvers, root, end);
	zygotes_end();
	free(solvers.program);
	return root > 0;
}
