/* SPDX-License-Identifier: BSD-3-Clause */
/* PM files as they were before the first run: the next one shall find the same. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "model/spin.h"
#include "races/races.h"
#include "session/sparse.h"

static void keep_copy(const char *path, uint32_t number)
{
	char copy[RACES_PATH + 16];
	int from = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	struct stat status;
	int to;

	snprintf(copy, sizeof(copy), "%s/%u", runtime_session->races.directory, number);
	to = (int)syscall(SYS_openat, AT_FDCWD, copy, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (from < 0 || to < 0 || fstat(from, &status) < 0 || ftruncate(to, status.st_size) < 0 ||
	    !sparse_copy(from, to, status.st_size))
		session_limit(runtime_session, thread_owner(),
			      "a PM file could not be copied: the second run found what the first "
			      "had left");
	if (from >= 0)
		syscall(SYS_close, from);
	if (to >= 0)
		syscall(SYS_close, to);
}

void races_keep(const char *path)
{
	struct session_races *races;
	char absolute[RACES_PATH];
	struct stat status;
	int saved_errno = errno;
	bool locked;
	uint32_t i;

	if (!runtime_session || !(races = &runtime_session->races)->restores || !path ||
	    !files_is_named(path) || (stat(path, &status) == 0 && !S_ISREG(status.st_mode)))
		return;
	if (*path == '/')
		snprintf(absolute, sizeof(absolute), "%s", path);
	else if (getcwd(absolute, sizeof(absolute)) &&
		 strlen(absolute) + strlen(path) + 2 < sizeof(absolute))
		strcat(strcat(absolute, "/"), path);
	else
		return;
	locked = spin_lock(&runtime_session->lock, thread_owner());
	for (i = 0; i < races->files; i++)
		if (strcmp(races->file[i].path, absolute) == 0)
			break;
	if (i == races->files && i < RACES_FILES) {
		strcpy(races->file[i].path, absolute);
		races->file[i].existed = stat(absolute, &status) == 0;
		if (races->file[i].existed)
			keep_copy(absolute, i);
		races->files++;
	}
	if (locked)
		spin_unlock(&runtime_session->lock);
	errno = saved_errno;
}
