/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that ask for names of files, or change them: under `perdure check` they mean copies. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>
#include <utime.h>

#include "runtime/execution.h"

/* ---- looking at names ---- */

#define LOOK(path) world_path(AT_FDCWD, path, WORLD_LOOK, NULL)

static int stated(int result, struct stat *status, const struct frame *frame)
{
	if (result == 0 && runtime_execution && S_ISREG(status->st_mode) && !status->st_nlink)
		status->st_nlink = 1;
	if (result == 0)
		event_stored(status, sizeof(*status), frame);
	return result;
}

PUBLIC int stat(const char *restrict path, struct stat *restrict status)
{
	return stated(REAL(stat)(LOOK(path), status), status, FRAME);
}

PUBLIC int lstat(const char *restrict path, struct stat *restrict status)
{
	const char *use = LOOK(path);

	if (use != path) /* into /proc, where links are */
		return stated(REAL(stat)(use, status), status, FRAME);
	return stated(REAL(lstat)(path, status), status, FRAME);
}

PUBLIC int fstat(int fd, struct stat *status)
{
	return stated(REAL(fstat)(fd, status), status, FRAME);
}

PUBLIC int fstatat(int directory, const char *restrict path, struct stat *restrict status,
		   int flags)
{
	const char *use = *path ? world_path(directory, path, WORLD_LOOK, NULL) : path;

	if (use != path)
		return stated(REAL(stat)(use, status), status, FRAME);
	return stated(REAL(fstatat)(directory, path, status, flags), status, FRAME);
}

/* With 64-bit files the structures are the same. */
PUBLIC int stat64(const char *restrict path, struct stat64 *restrict status)
{
	return stated(REAL(stat64)(LOOK(path), status), (struct stat *)status, FRAME);
}

PUBLIC int lstat64(const char *restrict path, struct stat64 *restrict status)
{
	return lstat(path, (struct stat *)status);
}

PUBLIC int fstat64(int fd, struct stat64 *status)
{
	return stated(REAL(fstat64)(fd, status), (struct stat *)status, FRAME);
}

PUBLIC int statx(int directory, const char *restrict path, int flags, unsigned mask,
		 struct statx *restrict status)
{
	const char *use = *path ? world_path(directory, path, WORLD_LOOK, NULL) : path;

	if (use != path)
		return REAL(statx)(AT_FDCWD, use, flags & ~AT_SYMLINK_NOFOLLOW, mask, status);
	return REAL(statx)(directory, path, flags, mask, status);
}

PUBLIC int access(const char *path, int mode)
{
	return REAL(access)(LOOK(path), mode);
}

PUBLIC int euidaccess(const char *path, int mode)
{
	return REAL(euidaccess)(LOOK(path), mode);
}

PUBLIC int faccessat(int directory, const char *path, int mode, int flags)
{
	const char *use = world_path(directory, path, WORLD_LOOK, NULL);

	return REAL(faccessat)(use == path ? directory : AT_FDCWD, use, mode, flags);
}

PUBLIC char *realpath(const char *restrict path, char *restrict result)
{
	char *found = REAL(realpath)(path, result);

	if (!found && runtime_execution && path) {
		const char *use = LOOK(path);

		if (use != path && *use) { /* it exists, but not for the kernel */
			found = result ? result : malloc(4096);
			if (found)
				world_canonical(path, found);
		}
	}
	if (found && result)
		event_stored(result, plain_length(result) + 1, FRAME);
	return found;
}

PUBLIC int chmod(const char *path, mode_t mode)
{
	struct world_name name;

	return REAL(chmod)(
		runtime_execution ? world_path(AT_FDCWD, path, WORLD_CHANGE, &name) : path, mode);
}

/* ---- changing names ---- */

/* What cannot be undone is refused. */
static int refuse(const char *what)
{
	char text[128];

	REAL(snprintf)(text, sizeof(text), "%s is refused: it could not be undone", what);
	session_limit(runtime_session, thread_owner(), text);
	errno = EPERM;
	return -1;
}

PUBLIC int unlink(const char *path)
{
	return world_unlink(AT_FDCWD, path, REAL(unlink));
}

PUBLIC int remove(const char *path)
{
	return world_unlink(AT_FDCWD, path, REAL(remove));
}

PUBLIC int unlinkat(int directory, const char *path, int flags)
{
	if (!runtime_execution)
		return REAL(unlinkat)(directory, path, flags);
	if (flags & AT_REMOVEDIR)
		return directory == AT_FDCWD ? rmdir(path) : refuse("unlinkat of a directory");
	return world_unlink(directory, path, REAL(unlink));
}

PUBLIC int rename(const char *from, const char *to)
{
	return world_rename(AT_FDCWD, from, AT_FDCWD, to);
}

PUBLIC int renameat(int from_directory, const char *from, int to_directory, const char *to)
{
	return world_rename(from_directory, from, to_directory, to);
}

PUBLIC int rmdir(const char *path)
{
	return world_rmdir(path, REAL(rmdir));
}

#define REFUSES(name, parameters, call)                                                            \
	PUBLIC int name parameters                                                                 \
	{                                                                                          \
		return runtime_execution ? refuse(#name) : REAL(name) call;                        \
	}                                                                                          \
	struct ignore_semicolon

REFUSES(link, (const char *from, const char *to), (from, to));
REFUSES(symlink, (const char *from, const char *to), (from, to));
REFUSES(linkat, (int d, const char *from, int e, const char *to, int flags),
	(d, from, e, to, flags));
REFUSES(symlinkat, (const char *from, int d, const char *to), (from, d, to));
REFUSES(mkfifo, (const char *path, mode_t mode), (path, mode));
REFUSES(mknod, (const char *path, mode_t mode, dev_t device), (path, mode, device));

/* Owners and times of the user's files stay as they are: the copies get the new ones. */
#define TOUCHES(name, parameters, call)                                                            \
	PUBLIC int name parameters                                                                 \
	{                                                                                          \
		struct world_name use;                                                             \
		if (runtime_execution)                                                             \
			path = world_path(AT_FDCWD, path, WORLD_CHANGE, &use);                     \
		return REAL(name) call;                                                            \
	}                                                                                          \
	struct ignore_semicolon

TOUCHES(chown, (const char *path, uid_t user, gid_t group), (path, user, group));
TOUCHES(lchown, (const char *path, uid_t user, gid_t group), (path, user, group));
TOUCHES(utime, (const char *path, const struct utimbuf *times), (path, times));
TOUCHES(utimes, (const char *path, const struct timeval times[2]), (path, times));

PUBLIC int utimensat(int directory, const char *path, const struct timespec times[2], int flags)
{
	struct world_name use;
	const char *other = path;

	if (runtime_execution)
		other = world_path(directory, path, WORLD_CHANGE, &use);
	return REAL(utimensat)(other == path ? directory : AT_FDCWD, other, times,
			       other == path ? flags : 0);
}

PUBLIC char *mkdtemp(char *template)
{
	char *marks = template + plain_length(template) - 6;

	if (!runtime_execution)
		return REAL(mkdtemp)(template);
	for (int i = 0; i < 10000; i++) {
		char digits[7];

		REAL(snprintf)(digits, sizeof(digits), "p%05d", i);
		memcpy(marks, digits, 6);
		if (world_mkdir(AT_FDCWD, template, 0700) == 0)
			return template;
		if (errno != EEXIST)
			break;
	}
	return NULL;
}

/* Listings are the kernel's: they do not show what this execution has made or removed. */
PUBLIC DIR *opendir(const char *path)
{
	const char *use = LOOK(path);

	if (runtime_execution && (use != path || world_changes(path)))
		session_limit(
			runtime_session, thread_owner(),
			"the program lists a directory in which it changes files: the listing "
			"does not show that");
	return REAL(opendir)(use);
}

PUBLIC int chdir(const char *path)
{
	const char *use = LOOK(path);

	if (use != path && *use)
		return refuse("chdir into a directory that the program has made");
	return REAL(chdir)(path);
}
