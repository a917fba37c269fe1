/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of files that go away, or change. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/world.h"

int world_unlink(int directory, const char *given, int (*real)(const char *path))
{
	char path[PATH_MAX];
	const struct world_entry *entry;
	struct stat status;
	bool locked;

	if (!runtime_execution || !world_find_path(directory, given, path) ||
	    world_is_outside(path))
		return real(given);
	locked = world_lock();
	entry = world_entry_of(path);
	world_note_asked(path, entry);
	if ((entry && entry->kind != WORLD_FILE) ||
	    (!entry && (syscall(SYS_lstat, path, &status) < 0 || !S_ISREG(status.st_mode)))) {
		world_unlock(locked);
		if (!entry)
			return real(given);
		errno = entry->kind == WORLD_DIRECTORY ? EISDIR : ENOENT;
		return -1;
	}
	world_note_change(WORLD_UNLINK, 0, path, NULL);
	world_set_entry(path, WORLD_ABSENT, 0);
	world_unlock(locked);
	return 0;
}

int world_rename(int from_directory, const char *given_from, int to_directory, const char *given_to)
{
	char from[PATH_MAX], to[PATH_MAX];
	struct world_name name;
	struct stat status;
	bool locked;

	if (!runtime_execution || !world_find_path(from_directory, given_from, from) ||
	    !world_find_path(to_directory, given_to, to) || world_is_outside(from) ||
	    world_is_outside(to))
		return syscall(SYS_renameat, from_directory, given_from, to_directory, given_to);
	world_path(AT_FDCWD, from, WORLD_CHANGE, &name);
	if (!name.file) {
		if (syscall(SYS_stat, from, &status) == 0 && S_ISDIR(status.st_mode))
			session_limit(runtime_session, thread_owner(),
				      "the program renamed a directory, which was not undone");
		return syscall(SYS_renameat, from_directory, given_from, to_directory, given_to);
	}
	locked = world_lock();
	world_note_change(WORLD_RENAME, name.file - 1, from, to);
	world_set_entry(from, WORLD_ABSENT, 0);
	world_set_entry(to, WORLD_FILE, name.file - 1);
	world_unlock(locked);
	return 0;
}

static bool is_empty_directory(const char *path)
{
	char entries[256];
	int fd = world_raw_open(path, O_RDONLY | O_DIRECTORY);
	long got, more;

	if (fd < 0)
		return false;
	got = syscall(SYS_getdents64, fd, entries, sizeof(entries));
	more = syscall(SYS_getdents64, fd, entries, sizeof(entries));
	syscall(SYS_close, fd);
	return got > 0 && got <= 48 && more == 0; /* "." and ".." take 24 bytes each */
}

int world_rmdir(const char *given, int (*real)(const char *path))
{
	char path[PATH_MAX];
	const struct world_entry *entry;
	bool locked, ours;

	if (!runtime_execution || !world_find_path(AT_FDCWD, given, path) || world_is_outside(path))
		return real(given);
	locked = world_lock();
	entry = world_entry_of(path);
	world_note_asked(path, entry);
	ours = entry ? entry->kind == WORLD_DIRECTORY : is_empty_directory(path);
	if (ours) {
		world_note_change(WORLD_UNLINK, 0, path, NULL);
		world_set_entry(path, WORLD_ABSENT, 0);
	}
	world_unlock(locked);
	return ours ? 0 : real(given);
}

int world_mkdir(int directory, const char *given, mode_t mode)
{
	char path[PATH_MAX];
	const struct world_entry *entry;
	struct stat status;
	bool locked;
	int result = -1;

	if (!runtime_execution || !world_find_path(directory, given, path) ||
	    world_is_outside(path))
		return syscall(SYS_mkdirat, directory, given, mode);
	locked = world_lock();
	entry = world_entry_of(path);
	world_note_asked(path, entry);
	if (entry ? entry->kind != WORLD_ABSENT : syscall(SYS_lstat, path, &status) == 0) {
		errno = EEXIST;
	} else if (!world_can_create(path)) {
		errno = ENOENT;
	} else {
		world_note_change(WORLD_MKDIR, 0, path, NULL);
		world_set_entry(path, WORLD_DIRECTORY, 0);
		result = 0;
	}
	world_unlock(locked);
	return result;
}
