/* SPDX-License-Identifier: BSD-3-Clause */
#include "drive/rerun.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drive/driver.h"

/* A pipe can be read once: what is in it is kept. */
static int keep_input(void)
{
	char buffer[1 << 16];
	struct stat status;
	ssize_t n;
	int fd;

	if (fstat(STDIN_FILENO, &status) < 0 || isatty(STDIN_FILENO))
		return -1;
	if (S_ISREG(status.st_mode))
		return STDIN_FILENO;
	if (!S_ISFIFO(status.st_mode) && !S_ISSOCK(status.st_mode))
		return -1;
	fd = memfd_create("perdure-input", MFD_CLOEXEC);
	while (fd >= 0 && (n = read(STDIN_FILENO, buffer, sizeof(buffer))) > 0)
		if (write(fd, buffer, n) != n)
			break;
	return fd;
}

bool rerun_start(struct rerun *rerun)
{
	struct session_races *races = &rerun->session->races;
	const char *temporary = getenv("TMPDIR");

	rerun->input = keep_input();
	rerun->nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
	snprintf(races->directory, sizeof(races->directory), "%s/perdure-XXXXXX",
		 temporary && *temporary ? temporary : "/tmp");
	if (!mkdtemp(races->directory)) {
		fprintf(stderr, "perdure: cannot make a directory for copies of PM files: %s\n",
			strerror(errno));
		races->directory[0] = 0;
		return false;
	}
	return true;
}

static void copy_back(const char *copy, const char *path)
{
	int from = open(copy, O_RDONLY | O_CLOEXEC);
	int to = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	struct stat status;
	off_t start = 0, end;

	/* Emptied first: what is a hole in the copy is one again. */
	if (from >= 0 && to >= 0 && fstat(from, &status) == 0 && ftruncate(to, 0) == 0 &&
	    ftruncate(to, status.st_size) == 0)
		while (start < status.st_size && (start = lseek(from, start, SEEK_DATA)) >= 0) {
			off_t in = start, out = start;

			end = lseek(from, start, SEEK_HOLE);
			while (in < end && copy_file_range(from, &in, to, &out, end - in, 0) > 0)
				;
			if (in < end)
				break;
			start = end;
		}
	if (from >= 0)
		close(from);
	if (to >= 0)
		close(to);
}

static void restore_files(const struct session_races *races)
{
	char copy[RACES_PATH + 16];

	for (uint32_t i = 0; i < races->files; i++) {
		snprintf(copy, sizeof(copy), "%s/%u", races->directory, i);
		if (races->file[i].existed)
			copy_back(copy, races->file[i].path);
		else
			unlink(races->file[i].path);
	}
}

bool rerun_once(struct rerun *rerun, bool shown, bool last, struct target_end *end)
{
	struct session_races *races = &rerun->session->races;
	struct driver driver;
	bool done;

	restore_files(races);
	races->restores = !last;
	races->listens = false;
	if (rerun->input > 0)
		lseek(rerun->input, 0, SEEK_SET);
	else if (rerun->input == STDIN_FILENO)
		lseek(STDIN_FILENO, 0, SEEK_SET);
	target_redirect(rerun->input, shown ? -1 : rerun->nowhere, shown ? -1 : rerun->nowhere);
	driver_start(&driver, rerun->drive);
	done = target_run_driven(rerun->command, &rerun->limits, &driver, &races->listens, end);
	driver_end(&driver);
	target_redirect(-1, -1, -1);
	if (done && rerun->drive && !end->budget && !driver.started) {
		fprintf(stderr, "perdure: --drive: the program never listened on a socket\n");
		return false;
	}
	return done;
}

void rerun_finish(struct rerun *rerun)
{
	struct session_races *races = &rerun->session->races;
	char copy[RACES_PATH + 16];

	for (uint32_t i = 0; i < races->files; i++) {
		snprintf(copy, sizeof(copy), "%s/%u", races->directory, i);
		unlink(copy);
	}
	if (races->directory[0])
		rmdir(races->directory);
	if (rerun->input > 0)
		close(rerun->input);
	close(rerun->nowhere);
}
