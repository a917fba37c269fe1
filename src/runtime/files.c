/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which files are persistent memory, and where in the window each one lives.
 *
 * PM is what the user names with --pm, what lies on a DAX file system or device, and what the
 * program maps with MAP_SYNC (libpmem and libpmem2 do that for every file they map).
 */
#include "races/races.h"
#include "runtime/execution.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "heap/heap.h"
#include "model/spin.h"

#ifndef STATX_ATTR_DAX
#define STATX_ATTR_DAX 0x00200000
#endif

#define GIB (1ull << 30)
/* The upper quarter of the window is for the heap. */
#define FILES_END HEAP_BASE

/* ---- paths as the program gave them ---- */

enum { OPENED = 64 };
static struct {
	uint64_t device, inode;
	char path[256];
} opened[OPENED];
static unsigned opened_next;

void files_note_open(int fd, const char *path)
{
	struct stat status;
	unsigned at;

	if (!runtime_session || !runtime_session->options.globs || fd < 0 || !path ||
	    fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
		return;
	at = __atomic_fetch_add(&opened_next, 1, __ATOMIC_RELAXED) % OPENED;
	opened[at].device = status.st_dev;
	opened[at].inode = status.st_ino;
	strncpy(opened[at].path, path, sizeof(opened[at].path) - 1);
}

static bool matches_any_glob(const char *path)
{
	const struct session_options *options = &runtime_session->options;

	for (uint32_t i = 0; i < options->globs; i++)
		if (fnmatch(options->glob[i], path, 0) == 0)
			return true;
	return false;
}

bool files_is_named(const char *path)
{
	char absolute[PATH_MAX];

	return matches_any_glob(path) || (realpath(path, absolute) && matches_any_glob(absolute));
}

static bool path_of(int fd, char *path, size_t size)
{
	const char *copied = world_path_of(fd);
	char link[64];
	ssize_t length;

	if (copied) {
		strncpy(path, copied, size - 1);
		path[size - 1] = 0;
		return true;
	}

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, size - 1);
	path[length > 0 ? length : 0] = 0;
	return length > 0;
}

static bool named_by_user(int fd, const struct stat *status)
{
	char path[PATH_MAX], directory[PATH_MAX];
	size_t length;

	if (!runtime_session->options.globs)
		return false;
	/* The newest name counts: inodes are used again. */
	for (unsigned n = 0; n < OPENED; n++) {
		unsigned i = (opened_next - 1 - n) % OPENED;

		if (opened[i].inode != status->st_ino || opened[i].device != status->st_dev)
			continue;
		if (matches_any_glob(opened[i].path))
			return true;
		break;
	}
	if (!path_of(fd, path, sizeof(path)))
		return false;
	if (matches_any_glob(path))
		return true;
	if (!getcwd(directory, sizeof(directory)))
		return false;
	length = strlen(directory);
	return strncmp(path, directory, length) == 0 && path[length] == '/' &&
	       matches_any_glob(path + length + 1);
}

static bool is_dax(int fd, const struct stat *status)
{
	struct statx more;
	char path[PATH_MAX];

	if (S_ISCHR(status->st_mode))
		return path_of(fd, path, sizeof(path)) && strncmp(path, "/dev/dax", 8) == 0;
	return statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &more) == 0 &&
	       more.stx_attributes & STATX_ATTR_DAX;
}

bool files_is_pm(int fd, int map_flags)
{
	struct stat status;

	if (fstat(fd, &status) < 0)
		return false;
	if ((map_flags & MAP_SHARED_VALIDATE) == MAP_SHARED_VALIDATE && map_flags & MAP_SYNC)
		return true;
	return named_by_user(fd, &status) || is_dax(fd, &status);
}

void files_note_unmatched(int fd)
{
	struct session *session = runtime_session;
	char path[PATH_MAX];
	bool locked;
	uint32_t i;

	if (!path_of(fd, path, sizeof(path)))
		return;
	locked = spin_lock(&session->lock, thread_owner());
	for (i = 0; i < session->seen_files; i++)
		if (strncmp(session->seen_file[i], path, SESSION_PATH - 1) == 0)
			break;
	if (i == session->seen_files && i < 16) {
		strncpy(session->seen_file[i], path, SESSION_PATH - 1);
		session->seen_files++;
	}
	if (locked)
		spin_unlock(&session->lock);
}

/* ---- slots of the window ---- */

static bool has_ranges(const struct session *session, uint32_t file)
{
	for (uint32_t i = 0; i < session->ranges; i++)
		if (session->range[i].file == file + 1)
			return true;
	return false;
}

/* An unmapped file gives its slot to a new one, if the new one fits in. */
static struct session_file *recycle(struct session *session, uint64_t reserve)
{
	for (uint32_t i = 0; i < session->files; i++)
		if (!session->file[i].heap && session->file[i].reserved >= reserve &&
		    !has_ranges(session, i))
			return &session->file[i];
	return NULL;
}

static struct session_file *new_slot(struct session *session, uint64_t reserve)
{
	struct session_file *file;

	if (session->files < SESSION_FILES &&
	    SESSION_WINDOW + session->window_used + reserve <= FILES_END) {
		file = &session->file[session->files++];
		file->base = SESSION_WINDOW + session->window_used;
		file->reserved = reserve;
		session->window_used += reserve;
		return file;
	}
	return recycle(session, reserve);
}

/*
 * Room to grow: fourfold, and 16 GiB for the first files; later ones, of programs with very many,
 * get 1 GiB. A very large file gets just what it needs.
 */
static uint64_t reservation(const struct session *session, uint64_t size)
{
	uint64_t reserve = size < 64 * GIB ? size * 4 : size;
	uint64_t least = session->files < 16 ? 16 * GIB : GIB;

	reserve = (reserve + GIB - 1) / GIB * GIB;
	return reserve > least ? reserve : least;
}

static struct session_file *add(struct session *session, int fd, const struct stat *status,
				uint64_t size)
{
	struct session_file *file = new_slot(session, reservation(session, size));

	if (!file)
		return NULL;
	file->device = status->st_dev;
	file->inode = status->st_ino;
	file->used = 0;
	file->unjudged = false;
	file->world = world_file_of(fd);
	path_of(fd, file->path, SESSION_PATH);
	return file;
}

/* An inode can be used again for another file once the first one is gone. */
static void rename_reused(struct session *session, struct session_file *file, int fd)
{
	char path[SESSION_PATH];

	if (file && path_of(fd, path, sizeof(path)) && strcmp(path, file->path) != 0 &&
	    !has_ranges(session, file - session->file))
		strcpy(file->path, path);
}

static struct session_file *find(struct session *session, int fd, const struct stat *status)
{
	uint32_t world = world_file_of(fd);

	for (uint32_t i = 0; world && i < session->files; i++)
		if (session->file[i].world == world)
			return &session->file[i];
	if (world) /* descriptors of the command's files serve one after the other */
		return NULL;
	for (uint32_t i = 0; i < session->files; i++)
		if (session->file[i].inode == status->st_ino &&
		    session->file[i].device == status->st_dev && !session->file[i].heap)
			return &session->file[i];
	return NULL;
}

struct session_file *files_find(int fd, uint64_t size)
{
	struct session *session = runtime_session;
	struct session_file *file;
	struct stat status;
	bool locked;

	if (fstat(fd, &status) < 0)
		return NULL;
	locked = spin_lock(&session->lock, thread_owner());
	file = find(session, fd, &status);
	rename_reused(session, file, fd);
	if (file && file->reserved < size && !has_ranges(session, file - session->file)) {
		file->inode = 0; /* outgrown, and not in use: start again elsewhere */
		file = NULL;
	}
	if (!file && size)
		file = add(session, fd, &status,
			   (uint64_t)status.st_size > size ? (uint64_t)status.st_size : size);
	if (locked)
		spin_unlock(&session->lock);
	return file;
}

void files_place(int fd, uint64_t base, uint64_t size)
{
	struct session *session = runtime_session;
	struct session_file *file;
	struct stat status;
	bool locked;

	if (fstat(fd, &status) < 0)
		return;
	locked = spin_lock(&session->lock, thread_owner());
	file = find(session, fd, &status);
	if (file && file->base != base && !has_ranges(session, file - session->file)) {
		file->inode = 0;
		file = NULL;
	}
	if (!file && session->files < SESSION_FILES) {
		file = &session->file[session->files++];
		*file = (struct session_file){
			.device = status.st_dev,
			.inode = status.st_ino,
			.base = base,
			.reserved = size,
			.world = world_file_of(fd),
		};
		path_of(fd, file->path, SESSION_PATH);
	}
	if (locked)
		spin_unlock(&session->lock);
}

struct session_file *files_second_place(const struct session_file *file, uint64_t offset,
					uint64_t size)
{
	struct session *session = runtime_session;
	struct session_file *place = NULL;
	bool locked = spin_lock(&session->lock, thread_owner());

	for (uint32_t i = 0; i < session->files && !place; i++)
		if (session->file[i].first == offset && session->file[i].device == file->device &&
		    session->file[i].second_of == file->inode && session->file[i].reserved >= size)
			place = &session->file[i];
	if (!place && session->files < SESSION_FILES) {
		uint64_t base = files_reserve(size);

		if (base) {
			place = &session->file[session->files++];
			*place = *file;
			place->base = base;
			place->reserved = size;
			place->used = 0;
			place->first = offset;
			place->second_of = file->inode;
			place->inode = 0; /* is not found as the file itself */
		}
	}
	if (locked)
		spin_unlock(&session->lock);
	return place;
}

uint64_t files_reserve(uint64_t size)
{
	struct session *session = runtime_session;
	uint64_t reserved = (size + GIB - 1) / GIB * GIB, start = 0;
	bool locked = spin_lock(&session->lock, thread_owner());

	if (SESSION_WINDOW + session->window_used + reserved <= FILES_END) {
		start = SESSION_WINDOW + session->window_used;
		session->window_used += reserved;
	}
	if (locked)
		spin_unlock(&session->lock);
	return start;
}

void files_release(uint64_t start, uint64_t end)
{
	struct session *session = runtime_session;
	uint64_t top = SESSION_WINDOW + session->window_used;

	if ((end + GIB - 1) / GIB * GIB != top || start % GIB)
		return;
	for (uint32_t i = 0; i < session->files; i++)
		if (session->file[i].base >= start && session->file[i].base < end)
			return;
	session->window_used = start - SESSION_WINDOW;
}

/* ---- the heap as a file ---- */

void __perdure_heap_grown(uint64_t used)
{
	struct session *session = runtime_session;
	struct session_file *file = NULL;
	bool locked;

	if (!session)
		return;
	locked = spin_lock(&session->lock, thread_owner());
	for (uint32_t i = 0; i < session->files && !file; i++)
		if (session->file[i].heap)
			file = &session->file[i];
	if (!file && session->files < SESSION_FILES) {
		file = &session->file[session->files++];
		*file = (struct session_file){
			.base = HEAP_BASE,
			.reserved = HEAP_SIZE,
			.heap = true,
			.path = "heap",
		};
		session->pm_mapped++;
	}
	if (file && used > file->used)
		file->used = used;
	if (!session->executions.on) /* which map it anew */
		window_heap = used;
	if (locked)
		spin_unlock(&session->lock);
}

void __perdure_heap_freed(void *p, size_t size)
{
	struct session_thread *thread;

	if (runtime_races) {
		races_freed(p, size);
		return;
	}
	thread = thread_enter();
	if (!thread)
		return;
	lines_forget(&runtime_session->lines, &thread->lines, (uintptr_t)p, size);
	thread_leave();
}

void files_note_heap(void)
{
	if (__perdure_heap_used && __perdure_heap_used())
		__perdure_heap_grown(__perdure_heap_used());
}
