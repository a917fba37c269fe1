/* SPDX-License-Identifier: BSD-3-Clause */
/* What descriptors lead to, and what becomes of files through them. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/world.h"

uint32_t world_file_of(int fd)
{
	struct stat status;
	int saved_errno = errno;
	uint32_t found = 0;

	if (!runtime_execution || !runtime_session->executions.files)
		return 0;
	if (syscall(SYS_fstat, fd, &status) == 0 && S_ISREG(status.st_mode))
		for (uint32_t i = 0; i < runtime_session->executions.files && !found; i++)
			if (world_backing_of(i)->fd && world_backing_of(i)->inode == status.st_ino)
				found = i + 1;
	errno = saved_errno;
	return found;
}

uint32_t world_make_heap(uint64_t size)
{
	static const char path[] = "(heap)"; /* which no file has */
	struct world_change change = { .operation = WORLD_SIZE, .size = size };
	bool locked = world_lock();
	uint32_t file = world_new_file(path, false);
	char backing[64];
	int fd;

	if (!world_take_backing(file)) {
		world_unlock(locked);
		return 0;
	}
	runtime_session->executions.file[file].pm = true;
	world_note_change(WORLD_CREATE, file, path, NULL);
	change.file = file;
	log_world(&change, NULL, HISTORY_JOINED);
	world_backing_path(world_backing_of(file)->fd, backing);
	fd = world_raw_open(backing, O_RDWR);
	syscall(SYS_ftruncate, fd, size);
	syscall(SYS_close, fd);
	world_unlock(locked);
	return file + 1;
}

bool world_has(uint32_t file)
{
	return file && world_backing_of(file - 1)->fd;
}

int world_open_backing(uint32_t file)
{
	char path[64];

	world_backing_path(world_backing_of(file)->fd, path);
	return world_raw_open(path, world_backing_of(file)->shared ? O_RDONLY : O_RDWR);
}

bool world_is_shared(uint32_t file)
{
	return file && world_backing_of(file - 1)->shared;
}

/* Only for PM: ordinary files were copied when they were opened. */
void world_make_own(int fd)
{
	uint32_t file = world_file_of(fd);
	char path[64];
	off_t at;
	int own;
	bool locked;

	if (!file || !world_backing_of(file - 1)->shared)
		return;
	at = lseek(fd, 0, SEEK_CUR);
	locked = world_lock();
	world_backing_path(world_backing_of(file - 1)->fd, path);
	if (world_copy_into(file - 1, path)) {
		world_backing_path(world_backing_of(file - 1)->fd, path);
		own = world_raw_open(path, O_RDWR);
		if (!runtime_explores)
			recovery_leave_image(file - 1, own);
		syscall(SYS_dup2, own, fd);
		syscall(SYS_close, own);
		lseek(fd, at, SEEK_SET);
	}
	world_unlock(locked);
}

/* Which then is the only one who has it. */
int world_copy_open(int fd)
{
	uint32_t file = world_file_of(fd);
	int copy = -1, from;

	if (!file || runtime_session->executions.file[file - 1].pm)
		return -1;
	from = world_open_backing(file - 1);
	copy = world_own_file();
	if (copy >= 0 && !world_copy_file(from, copy)) {
		syscall(SYS_close, copy);
		copy = -1;
	}
	if (from >= 0)
		syscall(SYS_close, from);
	if (copy >= 0)
		world_here()->backing[file - 1].shared = false;
	return copy;
}

void world_use_copy(int fd, int copy)
{
	uint32_t file = world_file_of(fd);
	struct stat status;

	if (!file || syscall(SYS_fstat, copy, &status) < 0)
		return;
	syscall(SYS_close, world_backing_of(file - 1)->fd);
	world_here()->backing[file - 1] =
		(struct world_backing){ .fd = copy, .inode = status.st_ino };
}

void world_note_size(int fd)
{
	uint32_t file = runtime_logs ? world_file_of(fd) : 0;
	struct world_change change = { .operation = WORLD_SIZE, .file = file - 1 };
	struct stat status;

	if (!file || syscall(SYS_fstat, fd, &status) < 0)
		return;
	change.size = status.st_size;
	log_world(&change, NULL, 0);
}

/* The bytes are written already. Offset -1: before where the descriptor is now. */
void world_note_write(int fd, int64_t offset, const void *bytes, size_t size)
{
	uint32_t file = runtime_logs ? world_file_of(fd) : 0;
	struct world_change change = { .operation = WORLD_WRITE, .file = file - 1, .size = size };

	if (!file || !size)
		return;
	change.offset = offset >= 0 ? offset : lseek(fd, 0, SEEK_CUR) - (int64_t)size;
	log_world(&change, bytes, 0);
}

static uint64_t hash_bytes(const char *bytes, size_t n)
{
	uint64_t hash = n;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3ull;
	return hash;
}

/*
 * Bytes that were written unseen: the whole of a small file if it has changed, what is new at the
 * end of a large one. It may be open for writing only.
 */
void world_note_content(int fd)
{
	enum { SMALL = 1 << 16 };
	static off_t known_size[WORLD_FILES];
	static uint64_t known[WORLD_FILES];
	uint32_t file = runtime_logs ? world_file_of(fd) : 0;
	struct stat status;
	char piece[SMALL];
	ssize_t got;
	off_t at = 0;
	int reader;

	if (!file || runtime_session->executions.file[file - 1].pm ||
	    syscall(SYS_fstat, fd, &status) < 0)
		return;
	reader = world_open_backing(file - 1);
	if (status.st_size > SMALL && known_size[file - 1] <= status.st_size)
		at = known_size[file - 1];
	while ((got = syscall(SYS_pread64, reader, piece, sizeof(piece), at)) > 0) {
		uint64_t hash = hash_bytes(piece, got);

		if (status.st_size > SMALL || hash != known[file - 1])
			world_note_write(fd, at, piece, got);
		known[file - 1] = hash;
		at += got;
	}
	known_size[file - 1] = status.st_size;
	syscall(SYS_close, reader);
}

void world_canonical(const char *path, char *result)
{
	world_find_path(AT_FDCWD, path, result);
}

const char *world_path_of(int fd)
{
	uint32_t file = world_file_of(fd);

	return file ? runtime_session->executions.file[file - 1].path : NULL;
}

bool world_changes(const char *given)
{
	char path[PATH_MAX];
	size_t length;

	if (!runtime_execution || !world_find_path(AT_FDCWD, given, path))
		return false;
	length = strlen(path);
	for (uint32_t i = 0; i < world_here()->entries; i++)
		if (strncmp(world_here()->entry[i].path, path, length) == 0 &&
		    world_here()->entry[i].path[length] == '/')
			return true;
	return false;
}
