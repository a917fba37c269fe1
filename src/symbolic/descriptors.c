/* SPDX-License-Identifier: BSD-3-Clause */
#include "symbolic/descriptors.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/execution.h"

static bool inherited[DESCRIPTORS]; /* not opened by the program */

static void note_open(struct open_files *files, int fd)
{
	struct stat status;

	if (syscall(SYS_fstat, fd, &status) < 0)
		return;
	if (!S_ISREG(status.st_mode)) {
		files->others |=
			!inherited[fd] && !S_ISDIR(status.st_mode) && !S_ISCHR(status.st_mode);
		return;
	}
	if (fd == STDOUT_FILENO || fd == STDERR_FILENO)
		return; /* all paths print to the same */
	files->file[files->count++] = (struct open_file){
		fd,
		syscall(SYS_lseek, fd, 0L, SEEK_CUR),
		syscall(SYS_fcntl, fd, F_GETFL, 0L),
		syscall(SYS_fcntl, fd, F_GETFD, 0L),
		-1,
	};
}

void descriptors_copy_written(struct open_files *files)
{
	for (unsigned i = 0; i < files->count; i++)
		if ((files->file[i].flags & O_ACCMODE) != O_RDONLY)
			files->file[i].copy = world_copy_open(files->file[i].fd);
}

void descriptors_drop_copies(const struct open_files *files)
{
	for (unsigned i = 0; i < files->count; i++)
		if (files->file[i].copy >= 0)
			syscall(SYS_close, files->file[i].copy);
}

void descriptors_find(struct open_files *files)
{
	enum { ONCE = 100 }; /* few enough for the page of the stack that is in use anyway */
	struct timespec none = { 0, 0 };
	struct pollfd list[ONCE];

	files->count = 0;
	files->others = false;
	for (int first = 0; first < DESCRIPTORS; first += ONCE) {
		for (int i = 0; i < ONCE; i++)
			list[i] = (struct pollfd){ .fd = first + i };
		syscall(SYS_ppoll, list, (long)ONCE, &none, NULL, 0L);
		for (int i = 0; i < ONCE; i++)
			if (!(list[i].revents & POLLNVAL))
				note_open(files, first + i);
	}
}

void descriptors_note_inherited(void)
{
	struct stat status;

	for (int fd = 0; fd < DESCRIPTORS; fd++)
		inherited[fd] = syscall(SYS_fstat, fd, &status) == 0 && !S_ISREG(status.st_mode);
}

/* Not by printf: every page of the C library that a new process uses costs it a fault. */
static void name_descriptor(int fd, char *path)
{
	static const char before[] = "/proc/self/fd/";
	char digits[16];
	unsigned n = 0, at = sizeof(before) - 1;

	__builtin_memcpy(path, before, sizeof(before));
	do
		digits[n++] = (char)('0' + fd % 10);
	while (fd /= 10);
	while (n)
		path[at++] = digits[--n];
	path[at] = 0;
}

/* Two processes must not move each other's offsets; the other one may be ahead already. */
void descriptors_reopen(const struct open_files *files)
{
	char path[64];

	for (unsigned i = 0; i < files->count; i++) {
		const struct open_file *file = &files->file[i];
		int own;

		if (file->copy >= 0)
			world_use_copy(file->fd, file->copy);
		name_descriptor(file->copy >= 0 ? file->copy : file->fd, path);
		own = syscall(SYS_openat, AT_FDCWD, path,
			      file->flags & ~(O_CREAT | O_EXCL | O_TRUNC | O_NOFOLLOW), 0);
		if (own < 0)
			continue;
		syscall(SYS_dup3, own, file->fd, file->closes & FD_CLOEXEC ? O_CLOEXEC : 0);
		syscall(SYS_close, own);
		syscall(SYS_lseek, file->fd, file->at, SEEK_SET);
	}
}
