/* SPDX-License-Identifier: BSD-3-Clause */
/* Which paths mean which files in this execution, and where their content is. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "model/spin.h"
#include "runtime/world.h"

bool world_lock(void)
{
	return spin_lock(&runtime_session->executions.lock, thread_owner());
}

void world_unlock(bool locked)
{
	if (locked)
		spin_unlock(&runtime_session->executions.lock);
}

/* ---- paths ---- */

static bool absolute(int directory, const char *path, char *result)
{
	char link[64], base[PATH_MAX];
	ssize_t length;

	if (path[0] == '/')
		return REAL(snprintf)(result, PATH_MAX, "%s", path) < PATH_MAX;
	if (directory == AT_FDCWD) {
		if (syscall(SYS_getcwd, base, sizeof(base)) < 0)
			return false;
	} else {
		REAL(snprintf)(link, sizeof(link), "/proc/self/fd/%d", directory);
		length = REAL(readlink)(link, base, sizeof(base) - 1);
		if (length <= 0)
			return false;
		base[length] = 0;
	}
	return REAL(snprintf)(result, PATH_MAX, "%s/%s", base, path) < PATH_MAX;
}

/* Takes "." and ".." and double slashes out. */
static void simplify(char *path)
{
	char *out = path, *at = path;

	while (*at) {
		size_t length;

		while (*at == '/')
			at++;
		length = strcspn(at, "/");
		if (length == 2 && at[0] == '.' && at[1] == '.') {
			while (out > path && *--out != '/')
				;
		} else if (length && !(length == 1 && at[0] == '.')) {
			*out++ = '/';
			memmove(out, at, length);
			out += length;
		}
		at += length;
	}
	if (out == path)
		*out++ = '/';
	*out = 0;
}

/* One name for one file: symbolic links are followed as far as there are any. */
bool world_find_path(int directory, const char *path, char result[PATH_MAX])
{
	char full[PATH_MAX], parent[PATH_MAX], *slash;

	if (!path || !*path || !absolute(directory, path, full))
		return false;
	if (REAL(realpath)(full, result))
		return true;
	simplify(full);
	slash = strrchr(full, '/');
	*slash = 0;
	if (REAL(realpath)(*full ? full : "/", parent))
		return REAL(snprintf)(result, PATH_MAX, "%s/%s", parent[1] ? parent : "",
				      slash + 1) < PATH_MAX;
	*slash = '/';
	strcpy(result, full);
	return true;
}

static bool starts_with(const char *path, const char *prefix)
{
	return strncmp(path, prefix, strlen(prefix)) == 0;
}

bool world_is_outside(const char *path)
{
	return starts_with(path, "/proc/") || starts_with(path, "/sys/") ||
	       (starts_with(path, "/dev/") && !starts_with(path, "/dev/shm/")) ||
	       strlen(path) >= EXECUTION_PATH;
}

/* ---- the tables; the lock is held ---- */

struct world_entry *world_entry_of(const char *path)
{
	for (uint32_t i = 0; i < world_here()->entries; i++)
		if (strcmp(world_here()->entry[i].path, path) == 0)
			return &world_here()->entry[i];
	return NULL;
}

struct world_entry *world_set_entry(const char *path, enum world_kind kind, uint32_t file)
{
	struct world_entry *entry = world_entry_of(path);

	if (!entry) {
		if (world_here()->entries == WORLD_ENTRIES) {
			runtime_session->executions.files_lost = 1;
			session_limit(runtime_session, thread_owner(),
				      "the program changes too many files to keep them apart");
			return NULL;
		}
		entry = &world_here()->entry[world_here()->entries++];
		strcpy(entry->path, path);
	}
	entry->kind = kind;
	entry->file = file;
	return entry;
}

const struct world_backing *world_backing_of(uint32_t file)
{
	return &world_here()->backing[file];
}

static uint32_t find_file(const char *path, uint32_t from)
{
	const struct executions *all = &runtime_session->executions;

	for (uint32_t i = from; i < all->files; i++)
		if (strcmp(all->file[i].path, path) == 0)
			return i;
	return WORLD_FILES;
}

void world_backing_path(int32_t fd, char text[64])
{
	if (runtime_explores)
		REAL(snprintf)(text, 64, "/proc/self/fd/%d", fd);
	else
		REAL(snprintf)(text, 64, "/proc/%d/fd/%d", runtime_session->executions.command, fd);
}

static bool has_name(uint32_t file)
{
	for (uint32_t i = 0; i < world_here()->entries; i++)
		if (world_here()->entry[i].kind == WORLD_FILE &&
		    world_here()->entry[i].file == file)
			return true;
	return false;
}

static int move_away(int fd)
{
	enum { HIGH = 800 };
	int high = fd < 0 ? -1 : (int)syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, HIGH);

	if (fd >= 0)
		syscall(SYS_close, fd);
	return high;
}

int world_own_file(void)
{
	return move_away(memfd_create("perdure-file", MFD_CLOEXEC));
}

static bool back_with(uint32_t file, int fd)
{
	struct stat status;

	if (fd < 0 || syscall(SYS_fstat, fd, &status) < 0)
		return false;
	world_here()->backing[file] = (struct world_backing){ .fd = fd, .inode = status.st_ino };
	return true;
}

void world_put(const char *given, int fd)
{
	char path[PATH_MAX];
	uint32_t file;
	bool locked;

	if (!world_find_path(AT_FDCWD, given, path))
		return;
	locked = world_lock();
	file = world_new_file(path, false);
	if (file < WORLD_FILES && back_with(file, move_away(fd)))
		world_set_entry(path, WORLD_FILE, file);
	world_unlock(locked);
}

void world_share(void)
{
	for (uint32_t i = 0; i < runtime_session->executions.files; i++)
		if (world_here()->backing[i].fd && !world_here()->backing[i].shared)
			world_here()->backing[i].shared = true;
}

/* A file of the command's for this one; false if there is none left. */
bool world_take_backing(uint32_t file)
{
	struct execution *execution = runtime_execution;
	uint32_t spare = execution->spare_used;
	char path[64];

	if (file < WORLD_FILES && world_backing_of(file)->fd && !world_backing_of(file)->shared &&
	    !has_name(file)) { /* of a file that is forgotten */
		world_backing_path(world_backing_of(file)->fd, path);
		return syscall(SYS_truncate, path, 0) == 0;
	}
	if (spare == execution->spares || file == WORLD_FILES) {
		runtime_session->executions.files_lost = 1;
		session_limit(runtime_session, thread_owner(),
			      "the program changes too many files to keep them apart");
		errno = EMFILE;
		return false;
	}
	execution->spare_used++;
	if (runtime_explores)
		return back_with(file, world_own_file());
	world_here()->backing[file] = (struct world_backing){
		.fd = execution->spare[spare],
		.inode = execution->spare_inode[spare],
	};
	return true;
}

static bool is_open(uint64_t inode)
{
	enum { DESCRIPTORS = 4096 };
	struct stat status;

	for (int fd = 0; fd < DESCRIPTORS; fd++)
		if (syscall(SYS_fstat, fd, &status) == 0 && status.st_ino == inode)
			return true;
	return false;
}

/* A file that has no name any more, and that nobody has open, gives its place to another one. */
static uint32_t find_forgotten(void)
{
	const struct executions *all = &runtime_session->executions;

	for (uint32_t i = 0; i < all->files; i++)
		if (!all->file[i].pm && !all->file[i].existed && world_backing_of(i)->fd &&
		    !world_backing_of(i)->shared && !has_name(i) &&
		    !is_open(world_backing_of(i)->inode))
			return i;
	return WORLD_FILES;
}

/* Index of a new file, or of the one that was at this path before; WORLD_FILES if there is no room.
 */
uint32_t world_new_file(const char *path, bool existed)
{
	struct executions *all = &runtime_session->executions;
	uint32_t file = find_file(path, 0);

	/* One that this execution has already, under whatever name, is another file. */
	while (file < WORLD_FILES && world_backing_of(file)->fd)
		file = find_file(path, file + 1);
	if (file < WORLD_FILES && runtime_execution->spare_used < runtime_execution->spares)
		return file;
	if (all->files == WORLD_FILES || runtime_execution->spare_used == runtime_execution->spares)
		return find_forgotten();
	file = all->files++;
	strcpy(all->file[file].path, path);
	all->file[file].existed = existed && !runtime_recovers;
	return file;
}
