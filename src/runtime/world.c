/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files as an execution of a check sees them. Nothing of the user's is changed: a file that is
 * opened to be written is copied first, into a file of the command's that has no name, and the path
 * means that one from then on. The run before the crash writes its changes to the log, so that a
 * recovery can be given the files as they were at its crash.
 *
 * Not seen: what happens in directories (links, listings), and writes by code that makes system
 * calls by itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "runtime/world.h"
#include "session/sparse.h"
#include "symbolic/symbolic.h"

/* ---- copying ---- */

static bool is_too_large(const struct stat *status)
{
	struct sysinfo system;

	return sysinfo(&system) == 0 &&
	       (uint64_t)status->st_blocks * 512 > (uint64_t)system.totalram * system.mem_unit / 4;
}

bool world_copy_file(int from, int to)
{
	struct stat status;

	if (syscall(SYS_fstat, from, &status) < 0)
		return false;
	if (is_too_large(&status)) {
		runtime_session->executions.too_large = 1;
		session_limit(
			runtime_session, thread_owner(),
			"a file that the program opens for writing is too large to be copied: "
			"it holds more than a quarter of the machine's memory");
		errno = EFBIG;
		return false;
	}
	if (syscall(SYS_ftruncate, to, status.st_size) < 0)
		return false;
	return sparse_copy(from, to, status.st_size);
}

int world_raw_open(const char *path, int flags)
{
	return syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0);
}

/* Gives the file a copy of its own of what is at `from`. */
bool world_copy_into(uint32_t file, const char *from_path)
{
	char path[64];
	int from = world_raw_open(from_path, O_RDONLY), to;
	bool copied = false;

	if (from < 0)
		return false;
	if (world_take_backing(file)) {
		world_backing_path(world_backing_of(file)->fd, path);
		to = world_raw_open(path, O_RDWR);
		copied = to >= 0 && world_copy_file(from, to);
		if (to >= 0)
			syscall(SYS_close, to);
	}
	syscall(SYS_close, from);
	return copied;
}

/* ---- looking up ---- */

void world_note_change(enum world_operation operation, uint32_t file, const char *path,
		       const char *to)
{
	struct world_change change = { .operation = operation, .file = file };

	if (!runtime_logs)
		return;
	REAL(snprintf)(change.path, sizeof(change.path), "%s", path ? path : "");
	REAL(snprintf)(change.to, sizeof(change.to), "%s", to ? to : "");
	log_world(&change, NULL, 0);
}

void world_note_asked(const char *path, const struct world_entry *entry)
{
	uint64_t state = 0;

	if (!runtime_recovers)
		return;
	if (entry)
		state = entry->kind == WORLD_FILE ? world_backing_of(entry->file)->state + 4
						  : entry->kind + 1;
	recovery_asked(execution_hash_text(path), state);
}

bool world_can_create(const char *path)
{
	char parent[PATH_MAX], *slash;
	struct world_entry *entry;

	strcpy(parent, path);
	slash = strrchr(parent, '/');
	*slash = 0;
	entry = world_entry_of(parent);
	if (entry)
		return entry->kind == WORLD_DIRECTORY;
	return syscall(SYS_access, *parent ? parent : "/", W_OK | X_OK) == 0;
}

static const char *use(uint32_t file, struct world_name *name)
{
	static __thread char unnamed[64];
	char *text = name ? name->text : unnamed;

	world_backing_path(world_backing_of(file)->fd, text);
	if (name) {
		name->file = file + 1;
		name->shared = world_backing_of(file)->shared;
	}
	return text;
}

/* An ordinary file that is to be changed but is everybody's becomes the execution's own. */
static bool own_if_ordinary(uint32_t file, enum world_intent intent)
{
	char from[64];

	if (intent == WORLD_LOOK || !world_backing_of(file)->shared ||
	    runtime_session->executions.file[file].pm)
		return true;
	world_backing_path(world_backing_of(file)->fd, from);
	return world_copy_into(file, from);
}

static const char *make(const char *path, struct world_name *name)
{
	uint32_t file = world_new_file(path, false);

	if (!world_take_backing(file) || !world_set_entry(path, WORLD_FILE, file))
		return "";
	name->created = true;
	world_note_change(WORLD_CREATE, file, path, NULL);
	return use(file, name);
}

/* A directory; what is in it is in the tables. */
static const char *empty_directory(struct world_name *name)
{
	static __thread char unnamed[64];
	char *text = name ? name->text : unnamed;

	world_backing_path(runtime_session->executions.empty, text);
	return text;
}

/* What is not in the tables is as the user has it. */
static const char *first_time(const char *given, const char *path, enum world_intent intent,
			      struct world_name *name)
{
	struct stat status;
	uint32_t file;

	if (intent == WORLD_LOOK)
		return given;
	if (syscall(SYS_stat, path, &status) < 0) {
		if (intent != WORLD_MAKE || errno != ENOENT || !world_can_create(path))
			return given;
		return make(path, name);
	}
	if (!S_ISREG(status.st_mode) || syscall(SYS_access, path, W_OK) < 0)
		return given; /* and if it may not be written, that is what open will say */
	file = world_new_file(path, true);
	if (!world_copy_into(file, path) || !world_set_entry(path, WORLD_FILE, file))
		return "";
	return use(file, name);
}

const char *world_path(int directory, const char *given, enum world_intent intent,
		       struct world_name *name)
{
	char path[PATH_MAX];
	const struct world_entry *entry;
	const char *result;
	int saved_errno = errno;
	bool locked;

	if (name)
		*name = (struct world_name){ .file = 0 };
	if (!runtime_execution || !world_find_path(directory, given, path) ||
	    world_is_outside(path)) {
		errno = saved_errno;
		return given;
	}
	locked = world_lock();
	entry = world_entry_of(path);
	world_note_asked(path, entry);
	if (!entry)
		result = first_time(given, path, intent, name);
	else if (entry->kind == WORLD_FILE)
		result = own_if_ordinary(entry->file, intent) ? use(entry->file, name) : "";
	else if (entry->kind == WORLD_ABSENT && intent == WORLD_MAKE && world_can_create(path))
		result = make(path, name);
	else if (entry->kind == WORLD_DIRECTORY)
		result = empty_directory(name);
	else
		result = ""; /* which does not exist */
	world_unlock(locked);
	errno = saved_errno;
	return result;
}

int world_open(int directory, const char *path, int flags, mode_t mode,
	       int (*real)(const char *, int, ...))
{
	bool writes = (flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC;
	enum world_intent intent = flags & O_CREAT ? WORLD_MAKE
				   : writes        ? WORLD_CHANGE
						   : WORLD_LOOK;
	struct world_name name;
	const char *use_path;
	int fd;

	if (flags & (O_DIRECTORY | O_PATH))
		intent = WORLD_LOOK;
	use_path = world_path(directory, path, intent, &name);
	if (!name.file) {
		if (use_path == path && directory != AT_FDCWD)
			return syscall(SYS_openat, directory, path, flags, mode);
		return real(use_path, flags, mode);
	}
	if (flags & O_CREAT && flags & O_EXCL && !name.created) {
		errno = EEXIST;
		return -1;
	}
	flags &= ~(O_CREAT | O_EXCL | O_NOFOLLOW); /* of the copy's name, which is a link */
	if (name.shared)
		fd = real(use_path, (flags & ~(O_ACCMODE | O_TRUNC)) | O_RDONLY);
	else
		fd = real(use_path, flags);
	if (fd < 0)
		return fd;
	if (symbolic_on && flags & O_TRUNC)
		inputs_changed(fd, 0);
	if (name.created)
		syscall(SYS_fchmod, fd, mode & 0777);
	if (flags & O_TRUNC && name.shared)
		ftruncate(fd, 0);
	else if (flags & O_TRUNC && !name.created)
		world_note_size(fd);
	return fd;
}
