/* SPDX-License-Identifier: BSD-3-Clause */
#include "drive/rerun.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "session/sparse.h"

bool rerun_start(struct rerun *rerun)
{
	struct session_races *races = &rerun->session->races;

	rerun->nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (!target_make_directory(races->directory, sizeof(races->directory))) {
		fprintf(stderr, "perdure: cannot make a directory for copies of PM files: %s\n",
			strerror(errno));
		return false;
	}
	return true;
}

/* Emptied first: what is a hole in the copy is one again. */
static bool copy_back(const char *copy, const char *path)
{
	int from = open(copy, O_RDONLY | O_CLOEXEC);
	int to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct stat status;
	bool copied = from >= 0 && to >= 0 && fstat(from, &status) == 0 &&
		      ftruncate(to, status.st_size) == 0 && sparse_copy(from, to, status.st_size);

	if (from >= 0)
		close(from);
	if (to >= 0)
		close(to);
	return copied;
}

static bool restore_files(const struct session_races *races)
{
	char copy[RACES_PATH + 16];

	for (uint32_t i = 0; i < races->files; i++) {
		snprintf(copy, sizeof(copy), "%s/%u", races->directory, i);
		if (!races->file[i].existed) {
			unlink(races->file[i].path);
		} else if (!copy_back(copy, races->file[i].path)) {
			fprintf(stderr, "perdure: cannot restore %s: %s; its copy is %s\n",
				races->file[i].path, strerror(errno), copy);
			return false;
		}
	}
	return true;
}

/* ---- while it runs ---- */

/* While the program's own output is not shown. */
static void show_progress(struct rerun *rerun)
{
	double now = target_now();

	if (!rerun->progress || rerun->shown || now - rerun->last < 0.5)
		return;
	rerun->last = now;
	fprintf(stderr, "\r\033[Kperdure: run %u of %u, %.0f s", rerun->runs + 1, rerun->planned,
		now - rerun->started);
	if (rerun->runs)
		fprintf(stderr, ", about %.0f s left",
			(now - rerun->started) / rerun->runs * (rerun->planned - rerun->runs));
	fflush(stderr);
}

static void tick(void *context, int target)
{
	struct rerun *rerun = context;

	driver_tick(&rerun->driver, rerun->session->serves, false, target);
	show_progress(rerun);
	if (!rerun->runs)
		input_tick(&rerun->recorded);
}

static void ended(void *context, int pid, int status)
{
	struct rerun *rerun = context;

	if (pid != rerun->driver.pid)
		return;
	rerun->driver.done = true;
	rerun->driver.status = status;
}

/* Of all processes that have ended. */
static double cpu_time(void)
{
	struct rusage usage;

	getrusage(RUSAGE_CHILDREN, &usage);
	return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec +
	       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

bool rerun_once(struct rerun *rerun, bool shown, bool last, struct target_end *end)
{
	struct session_races *races = &rerun->session->races;
	const struct target_company company = { tick, ended, rerun };
	int output = shown ? -1 : rerun->nowhere;
	double before;
	bool done;

	if (!restore_files(races))
		return false;
	races->restores = !last;
	rerun->shown = shown;
	if (!rerun->runs)
		rerun->started = target_now();
	rerun->session->serves = false;
	if (!rerun->runs)
		rerun->input = input_start(&rerun->recorded);
	else
		lseek(rerun->input, 0, SEEK_SET);
	target_redirect(rerun->input, output, output);
	driver_start(&rerun->driver, rerun->drive);
	before = cpu_time();
	done = target_run_again(rerun->command, &rerun->limits, &company, end);
	driver_end(&rerun->driver);
	if (!rerun->runs)
		rerun->first_cpu_time = cpu_time() - before;
	if (rerun->progress && !shown)
		fprintf(stderr, "\r\033[K");
	target_redirect(-1, -1, -1);
	if (!rerun->runs++)
		rerun->input = input_end(&rerun->recorded);
	return done && (end->budget || driver_did_its_work(&rerun->driver));
}

void rerun_finish(struct rerun *rerun)
{
	struct session_races *races = &rerun->session->races;
	char copy[RACES_PATH + 16];

	for (uint32_t i = 0; i < races->files; i++) {
		snprintf(copy, sizeof(copy), "%s/%u", races->directory, i);
		unlink(copy);
	}
	rmdir(races->directory);
	if (rerun->input > 0)
		close(rerun->input);
	close(rerun->nowhere);
}
