/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions that open files or change them: --pm is matched with their names, and under `perdure
 * check` paths lead to copies (world.c). Elsewhere they only note what was opened.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utime.h>

#include "fibers/fibers.h"
#include "races/races.h"
#include "runtime/execution.h"
#include "symbolic/network.h"
#include "symbolic/symbolic.h"

/* ---- open ---- */

/* The mode argument is there only with O_CREAT or O_TMPFILE. */
#define OPEN_MODE(flags, mode)                                                                     \
	do {                                                                                       \
		va_list arguments;                                                                 \
		va_start(arguments, flags);                                                        \
		if ((flags) & (O_CREAT | __O_TMPFILE))                                             \
			mode = va_arg(arguments, mode_t);                                          \
		va_end(arguments);                                                                 \
	} while (0)

#define OPENS(name)                                                                                \
	PUBLIC int name(const char *path, int flags, ...)                                          \
	{                                                                                          \
		mode_t mode = 0;                                                                   \
		int fd;                                                                            \
		OPEN_MODE(flags, mode);                                                            \
		if (runtime_races)                                                                 \
			races_keep(path);                                                          \
		if (runtime_execution)                                                             \
			fd = world_open(AT_FDCWD, path, flags, mode, REAL(name));                  \
		else                                                                               \
			fd = REAL(name)(path, flags, mode);                                        \
		files_note_open(fd, path);                                                         \
		return fd;                                                                         \
	}                                                                                          \
	struct ignore_semicolon
#define OPENS_AT(name)                                                                             \
	PUBLIC int name(int directory, const char *path, int flags, ...)                           \
	{                                                                                          \
		mode_t mode = 0;                                                                   \
		int fd;                                                                            \
		OPEN_MODE(flags, mode);                                                            \
		if (runtime_races)                                                                 \
			races_keep(path);                                                          \
		if (runtime_execution)                                                             \
			fd = world_open(directory, path, flags, mode, REAL(open));                 \
		else                                                                               \
			fd = REAL(name)(directory, path, flags, mode);                             \
		files_note_open(fd, path);                                                         \
		return fd;                                                                         \
	}                                                                                          \
	struct ignore_semicolon

OPENS(open);
OPENS(open64);
OPENS_AT(openat);
OPENS_AT(openat64);

PUBLIC int creat(const char *path, mode_t mode)
{
	int fd;

	if (runtime_races)
		races_keep(path);
	if (runtime_execution)
		fd = world_open(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode, REAL(open));
	else
		fd = REAL(creat)(path, mode);
	files_note_open(fd, path);
	return fd;
}

/* Names that are the same in each execution, which cannot meet another one's. */
static int make_temporary(char *template, int suffix, int flags)
{
	enum { MARKS = 6, TRIES = 10000 };
	char *marks = template + plain_length(template) - suffix - MARKS;

	for (int i = 0; i < TRIES; i++) {
		char digits[MARKS + 1];
		int fd;

		REAL(snprintf)(digits, sizeof(digits), "p%05d", i);
		memcpy(marks, digits, MARKS);
		fd = world_open(AT_FDCWD, template, O_RDWR | O_CREAT | O_EXCL | flags, 0600,
				REAL(open));
		if (fd >= 0 || errno != EEXIST)
			return fd;
	}
	return -1;
}

#define TEMPORARIES(name, parameters, call, suffix, flags)                                         \
	PUBLIC int name parameters                                                                 \
	{                                                                                          \
		return runtime_execution ? make_temporary(template, suffix, flags)                 \
					 : REAL(name) call;                                        \
	}                                                                                          \
	struct ignore_semicolon

TEMPORARIES(mkstemp, (char *template), (template), 0, 0);
TEMPORARIES(mkstemp64, (char *template), (template), 0, 0);
TEMPORARIES(mkostemp, (char *template, int flags), (template, flags), 0, flags);
TEMPORARIES(mkostemp64, (char *template, int flags), (template, flags), 0, flags);
TEMPORARIES(mkstemps, (char *template, int suffix), (template, suffix), suffix, 0);
TEMPORARIES(mkstemps64, (char *template, int suffix), (template, suffix), suffix, 0);

static bool stdio_changes(const char *mode)
{
	return strchr(mode, 'w') || strchr(mode, 'a') || strchr(mode, '+');
}

/* The result may lie in `name`. */
static const char *stdio_path(const char *path, const char *mode, struct world_name *name)
{
	const char *use;

	if (!runtime_execution || !path || !mode)
		return path;
	use = world_path(AT_FDCWD, path,
			 !stdio_changes(mode) ? WORLD_LOOK
			 : strchr(mode, 'r')  ? WORLD_CHANGE
					      : WORLD_MAKE,
			 name);
	if (name->file) {
		if (name->shared && runtime_session->executions.file[name->file - 1].pm) {
			/* What stdio reads of it is not seen. */
			execution_note_input(INPUT_FOREIGN);
			int fd = REAL(open)(use, O_RDONLY | O_CLOEXEC);

			world_make_own(fd);
			close(fd);
			use = world_path(AT_FDCWD, path, WORLD_CHANGE, name);
		}
	}
	return use;
}

#define FOPENS(name)                                                                               \
	PUBLIC FILE *name(const char *restrict path, const char *restrict mode)                    \
	{                                                                                          \
		struct world_name use;                                                             \
		FILE *file = REAL(name)(stdio_path(path, mode, &use), mode);                       \
		if (file)                                                                          \
			files_note_open(fileno(file), path);                                       \
		return file;                                                                       \
	}                                                                                          \
	struct ignore_semicolon

FOPENS(fopen);
FOPENS(fopen64);

PUBLIC FILE *freopen(const char *restrict path, const char *restrict mode, FILE *restrict file)
{
	struct world_name use;

	return REAL(freopen)(stdio_path(path, mode, &use), mode, file);
}

/* What stdio has written is known when it is flushed. */
static void note_stdio(FILE *file)
{
	if (runtime_logs && file)
		world_note_content(fileno(file));
}

PUBLIC int fflush(FILE *file)
{
	int result = REAL(fflush)(file);

	note_stdio(file);
	return result;
}

PUBLIC int fclose(FILE *file)
{
	if (runtime_logs && file) {
		REAL(fflush)(file);
		note_stdio(file);
	}
	return REAL(fclose)(file);
}

/* ---- locks ---- */

/* The image is open for reading only; a lock for writing would need more. */
static bool locks_image(int fd, int command)
{
	bool locks = command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK ||
		     command == F_OFD_SETLKW;

	if (runtime_explores && locks)
		return true; /* paths have files of their own, and must not wait for each other */
	return runtime_recovers && locks && world_is_shared(world_file_of(fd));
}

/* A descriptor of an exploration's network may have been duplicated. */
static int noticed(int fd, int command, int result)
{
	if (network_on && (command == F_DUPFD || command == F_DUPFD_CLOEXEC))
		network_duplicated(fd, result);
	return result;
}

#define CONTROLS(name)                                                                             \
	PUBLIC int name(int fd, int command, ...)                                                  \
	{                                                                                          \
		va_list arguments;                                                                 \
		void *argument;                                                                    \
		va_start(arguments, command);                                                      \
		argument = va_arg(arguments, void *);                                              \
		va_end(arguments);                                                                 \
		return locks_image(fd, command)                                                    \
			       ? 0                                                                 \
			       : noticed(fd, command, REAL(name)(fd, command, argument));          \
	}                                                                                          \
	struct ignore_semicolon

CONTROLS(fcntl);
CONTROLS(fcntl64);

PUBLIC int lockf(int fd, int command, off_t size)
{
	return locks_image(fd, F_SETLK) ? 0 : REAL(lockf)(fd, command, size);
}

PUBLIC int mkdir(const char *path, mode_t mode)
{
	return world_mkdir(AT_FDCWD, path, mode);
}

PUBLIC int mkdirat(int directory, const char *path, mode_t mode)
{
	return world_mkdir(directory, path, mode);
}

/* ---- sizes ---- */

/* What is there already needs no copy: programs ask for it at each start. */
static bool is_image(int fd, struct stat *status)
{
	return runtime_recovers && syscall(SYS_fstat, fd, status) == 0 &&
	       world_is_shared(world_file_of(fd));
}

static bool has_size(int fd, off_t size)
{
	struct stat status;

	return is_image(fd, &status) && status.st_size == size;
}

static bool reaches(int fd, off_t end)
{
	struct stat status;

	return is_image(fd, &status) && status.st_size >= end;
}

static int resized(int fd, int result)
{
	if (result == 0)
		world_note_size(fd);
	return result;
}

PUBLIC int ftruncate(int fd, off_t size)
{
	if (has_size(fd, size))
		return 0;
	if (symbolic_on)
		inputs_changed(fd, size);
	world_make_own(fd);
	return resized(fd, REAL(ftruncate)(fd, size));
}

PUBLIC int ftruncate64(int fd, off64_t size)
{
	return ftruncate(fd, size);
}

PUBLIC int truncate(const char *path, off_t size)
{
	int fd, result;

	if (!runtime_execution)
		return REAL(truncate)(path, size);
	fd = world_open(AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0, REAL(open));
	if (fd < 0)
		return -1;
	result = ftruncate(fd, size);
	close(fd);
	return result;
}

PUBLIC int posix_fallocate(int fd, off_t offset, off_t size)
{
	if (reaches(fd, offset + size))
		return 0;
	world_make_own(fd);
	return resized(fd, REAL(posix_fallocate)(fd, offset, size));
}

PUBLIC int posix_fallocate64(int fd, off64_t offset, off64_t size)
{
	return posix_fallocate(fd, offset, size);
}

PUBLIC int fallocate(int fd, int mode, off_t offset, off_t size)
{
	if (!mode && reaches(fd, offset + size))
		return 0;
	world_make_own(fd);
	return resized(fd, REAL(fallocate)(fd, mode, offset, size));
}

PUBLIC int fallocate64(int fd, int mode, off64_t offset, off64_t size)
{
	return fallocate(fd, mode, offset, size);
}

/* ---- content: what is written with system calls ---- */

PUBLIC int vdprintf(int fd, const char *restrict format, va_list arguments)
{
	int result = REAL(vdprintf)(fd, format, arguments);

	world_note_content(fd);
	return result;
}

PUBLIC int dprintf(int fd, const char *restrict format, ...)
{
	va_list arguments;
	int result;

	va_start(arguments, format);
	result = vdprintf(fd, format, arguments);
	va_end(arguments);
	return result;
}

PUBLIC ssize_t sendfile(int to, int from, off_t *offset, size_t size)
{
	ssize_t result = REAL(sendfile)(to, from, offset, size);

	world_note_content(to);
	return result;
}

PUBLIC ssize_t copy_file_range(int from, off64_t *from_offset, int to, off64_t *to_offset,
			       size_t size, unsigned flags)
{
	ssize_t result = REAL(copy_file_range)(from, from_offset, to, to_offset, size, flags);

	world_note_content(to);
	return result;
}

PUBLIC ssize_t write(int fd, const void *bytes, size_t size)
{
	ssize_t result;

	if (runtime_races) {
		races_handed(fd, true);
		races_output();
	}
	event_load(bytes, size, FRAME);
	if (symbolic_on)
		inputs_changed(fd, 0);
	if (runtime_recovers)
		world_make_own(fd);
	result = fibers_on ? fiber_write(fd, bytes, size) : KERNEL(write)(fd, bytes, size);
	if (runtime_logs && result > 0)
		world_note_write(fd, -1, bytes, result);
	return result;
}

#define PWRITES(name, offset_type)                                                                 \
	PUBLIC ssize_t name(int fd, const void *bytes, size_t size, offset_type offset)            \
	{                                                                                          \
		ssize_t result;                                                                    \
		event_load(bytes, size, FRAME);                                                    \
		if (symbolic_on)                                                                   \
			inputs_changed(fd, 0);                                                     \
		if (runtime_recovers)                                                              \
			world_make_own(fd);                                                        \
		result = REAL(name)(fd, bytes, size, offset);                                      \
		if (runtime_logs && result > 0)                                                    \
			world_note_write(fd, offset, bytes, result);                               \
		return result;                                                                     \
	}                                                                                          \
	struct ignore_semicolon

PWRITES(pwrite, off_t);
PWRITES(pwrite64, off64_t);

/* PM that was there before the crash is read from where it is mapped. */
static bool read_image(int fd, void *bytes, size_t size, off_t offset, ssize_t *result,
		       const struct frame *frame)
{
	uint32_t file = runtime_recovers ? world_file_of(fd) : 0;

	if (!world_is_shared(file) || !runtime_session->executions.file[file - 1].pm)
		return false;
	*result = recovery_read(file - 1, fd, bytes, size, offset, frame);
	return *result >= 0;
}

#define FILLED(result)                                                                             \
	do {                                                                                       \
		int saved_errno = errno;                                                           \
		event_stored(bytes, (result) > 0 ? (size_t)(result) : 0, FRAME);                   \
		errno = saved_errno;                                                               \
	} while (0)

PUBLIC ssize_t read(int fd, void *bytes, size_t size)
{
	ssize_t result;
	int saved_errno;

	if (symbolic_on)
		inputs_changed(fd, 0);
	if (runtime_recovers && read_image(fd, bytes, size, lseek(fd, 0, SEEK_CUR), &result, FRAME))
		lseek(fd, result, SEEK_CUR);
	else {
		result = fiber_await(fd, POLLIN) ? KERNEL(read)(fd, bytes, size) : -1;
	}
	if (runtime_races)
		races_handed(fd, false);
	saved_errno = errno;
	network_filled(fd, bytes, result > 0 ? (size_t)result : 0, FRAME);
	errno = saved_errno;
	return result;
}

#define PREADS(name, offset_type)                                                                  \
	PUBLIC ssize_t name(int fd, void *bytes, size_t size, offset_type offset)                  \
	{                                                                                          \
		ssize_t result;                                                                    \
		if (!runtime_recovers || !read_image(fd, bytes, size, offset, &result, FRAME))     \
			result = REAL(name)(fd, bytes, size, offset);                              \
		FILLED(result);                                                                    \
		return result;                                                                     \
	}                                                                                          \
	struct ignore_semicolon

PREADS(pread, off_t);
PREADS(pread64, off64_t);
