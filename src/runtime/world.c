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
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "model/spin.h"
#include "runtime/execution.h"

static bool lock(void)
{
	return spin_lock(&runtime_session->executions.lock, thread_owner());
}

static void unlock(bool locked)
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
static bool canonical(int directory, const char *path, char result[PATH_MAX])
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

static bool is_outside(const char *path)
{
	return starts_with(path, "/proc/") || starts_with(path, "/sys/") ||
	       (starts_with(path, "/dev/") && !starts_with(path, "/dev/shm/")) ||
	       strlen(path) >= EXECUTION_PATH;
}

/* ---- the tables; the lock is held ---- */

static struct world *world(void)
{
	return &runtime_execution->world;
}

static struct world_entry *find_entry(const char *path)
{
	for (uint32_t i = 0; i < world()->entries; i++)
		if (strcmp(world()->entry[i].path, path) == 0)
			return &world()->entry[i];
	return NULL;
}

static struct world_entry *set_entry(const char *path, enum world_kind kind, uint32_t file)
{
	struct world_entry *entry = find_entry(path);

	if (!entry) {
		if (world()->entries == WORLD_ENTRIES) {
			runtime_session->executions.files_lost = 1;
			session_limit(runtime_session, thread_owner(),
				      "the program changes too many files to keep them apart");
			return NULL;
		}
		entry = &world()->entry[world()->entries++];
		strcpy(entry->path, path);
	}
	entry->kind = kind;
	entry->file = file;
	return entry;
}

static const struct world_backing *backing_of(uint32_t file)
{
	return &world()->backing[file];
}

static uint32_t find_file(const char *path, uint32_t from)
{
	const struct executions *all = &runtime_session->executions;

	for (uint32_t i = from; i < all->files; i++)
		if (strcmp(all->file[i].path, path) == 0)
			return i;
	return WORLD_FILES;
}

static void backing_path(int32_t fd, char text[64])
{
	REAL(snprintf)(text, 64, "/proc/%d/fd/%d", runtime_session->executions.command, fd);
}

static bool has_name(uint32_t file)
{
	for (uint32_t i = 0; i < world()->entries; i++)
		if (world()->entry[i].kind == WORLD_FILE && world()->entry[i].file == file)
			return true;
	return false;
}

/* A file of the command's for this one; false if there is none left. */
static bool take_backing(uint32_t file)
{
	struct execution *execution = runtime_execution;
	uint32_t spare = execution->spare_used;
	char path[64];

	if (file < WORLD_FILES && backing_of(file)->fd && !backing_of(file)->shared &&
	    !has_name(file)) { /* of a file that is forgotten */
		backing_path(backing_of(file)->fd, path);
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
	world()->backing[file] = (struct world_backing){
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
		if (!all->file[i].pm && !all->file[i].existed && backing_of(i)->fd &&
		    !backing_of(i)->shared && !has_name(i) && !is_open(backing_of(i)->inode))
			return i;
	return WORLD_FILES;
}

/* Index of a new file, or of the one that was at this path before; WORLD_FILES if there is no room.
 */
static uint32_t new_file(const char *path, bool existed)
{
	struct executions *all = &runtime_session->executions;
	uint32_t file = find_file(path, 0);

	/* One that this execution has already, under whatever name, is another file. */
	while (file < WORLD_FILES && backing_of(file)->fd)
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

/* ---- copying ---- */

static bool copy_range(int from, int to, off_t start, off_t end)
{
	enum { PIECE = 1 << 16 };
	char piece[PIECE];

	while (start < end) {
		size_t wanted = end - start < PIECE ? (size_t)(end - start) : PIECE;
		ssize_t got = syscall(SYS_pread64, from, piece, wanted, start);

		if (got <= 0 || syscall(SYS_pwrite64, to, piece, got, start) != got)
			return got == 0;
		start += got;
	}
	return true;
}

static bool is_too_large(const struct stat *status)
{
	struct sysinfo system;

	return sysinfo(&system) == 0 &&
	       (uint64_t)status->st_blocks * 512 > (uint64_t)system.totalram * system.mem_unit / 4;
}

static bool copy_file(int from, int to)
{
	struct stat status;
	off_t at = 0;

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
	while (at < status.st_size) {
		off_t data = lseek(from, at, SEEK_DATA), hole;

		if (data < 0)
			break;
		hole = lseek(from, data, SEEK_HOLE);
		if (!copy_range(from, to, data, hole < 0 ? status.st_size : hole))
			return false;
		at = hole < 0 ? status.st_size : hole;
	}
	return true;
}

static int raw_open(const char *path, int flags)
{
	return syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0);
}

/* Gives the file a copy of its own of what is at `from`. */
static bool copy_into(uint32_t file, const char *from_path)
{
	char path[64];
	int from = raw_open(from_path, O_RDONLY), to;
	bool copied = false;

	if (from < 0)
		return false;
	if (take_backing(file)) {
		backing_path(backing_of(file)->fd, path);
		to = raw_open(path, O_RDWR);
		copied = to >= 0 && copy_file(from, to);
		if (to >= 0)
			syscall(SYS_close, to);
	}
	syscall(SYS_close, from);
	return copied;
}

/* ---- looking up ---- */

static void note_change(enum world_operation operation, uint32_t file, const char *path,
			const char *to)
{
	struct world_change change = { .operation = operation, .file = file };

	if (!runtime_logs)
		return;
	REAL(snprintf)(change.path, sizeof(change.path), "%s", path ? path : "");
	REAL(snprintf)(change.to, sizeof(change.to), "%s", to ? to : "");
	log_world(&change, NULL, 0);
}

static void note_asked(const char *path, const struct world_entry *entry)
{
	uint64_t state = 0;

	if (!runtime_recovers)
		return;
	if (entry)
		state = entry->kind == WORLD_FILE ? backing_of(entry->file)->state + 4
						  : entry->kind + 1;
	recovery_asked(execution_hash_text(path), state);
}

static bool can_create_in(const char *path)
{
	char parent[PATH_MAX], *slash;
	struct world_entry *entry;

	strcpy(parent, path);
	slash = strrchr(parent, '/');
	*slash = 0;
	entry = find_entry(parent);
	if (entry)
		return entry->kind == WORLD_DIRECTORY;
	return syscall(SYS_access, *parent ? parent : "/", W_OK | X_OK) == 0;
}

static const char *use(uint32_t file, struct world_name *name)
{
	static __thread char unnamed[64];
	char *text = name ? name->text : unnamed;

	backing_path(backing_of(file)->fd, text);
	if (name) {
		name->file = file + 1;
		name->shared = backing_of(file)->shared;
	}
	return text;
}

/* An ordinary file that is to be changed but is everybody's becomes the execution's own. */
static bool own_if_ordinary(uint32_t file, enum world_intent intent)
{
	char from[64];

	if (intent == WORLD_LOOK || !backing_of(file)->shared ||
	    runtime_session->executions.file[file].pm)
		return true;
	backing_path(backing_of(file)->fd, from);
	return copy_into(file, from);
}

static const char *make(const char *path, struct world_name *name)
{
	uint32_t file = new_file(path, false);

	if (!take_backing(file) || !set_entry(path, WORLD_FILE, file))
		return "";
	name->created = true;
	note_change(WORLD_CREATE, file, path, NULL);
	return use(file, name);
}

/* A directory; what is in it is in the tables. */
static const char *empty_directory(struct world_name *name)
{
	static __thread char unnamed[64];
	char *text = name ? name->text : unnamed;

	backing_path(runtime_session->executions.empty, text);
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
		if (intent != WORLD_MAKE || errno != ENOENT || !can_create_in(path))
			return given;
		return make(path, name);
	}
	if (!S_ISREG(status.st_mode) || syscall(SYS_access, path, W_OK) < 0)
		return given; /* and if it may not be written, that is what open will say */
	file = new_file(path, true);
	if (!copy_into(file, path) || !set_entry(path, WORLD_FILE, file))
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
	if (!runtime_execution || !canonical(directory, given, path) || is_outside(path)) {
		errno = saved_errno;
		return given;
	}
	locked = lock();
	entry = find_entry(path);
	note_asked(path, entry);
	if (!entry)
		result = first_time(given, path, intent, name);
	else if (entry->kind == WORLD_FILE)
		result = own_if_ordinary(entry->file, intent) ? use(entry->file, name) : "";
	else if (entry->kind == WORLD_ABSENT && intent == WORLD_MAKE && can_create_in(path))
		result = make(path, name);
	else if (entry->kind == WORLD_DIRECTORY)
		result = empty_directory(name);
	else
		result = ""; /* which does not exist */
	unlock(locked);
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
	flags &= ~(O_CREAT | O_EXCL);
	if (name.shared)
		fd = real(use_path, (flags & ~(O_ACCMODE | O_TRUNC)) | O_RDONLY);
	else
		fd = real(use_path, flags);
	if (fd < 0)
		return fd;
	if (name.created)
		syscall(SYS_fchmod, fd, mode & 0777);
	if (flags & O_TRUNC && name.shared)
		ftruncate(fd, 0);
	else if (flags & O_TRUNC && !name.created)
		world_note_size(fd);
	return fd;
}

/* ---- descriptors ---- */

uint32_t world_file_of(int fd)
{
	struct stat status;
	int saved_errno = errno;
	uint32_t found = 0;

	if (!runtime_execution || !runtime_session->executions.files)
		return 0;
	if (syscall(SYS_fstat, fd, &status) == 0 && S_ISREG(status.st_mode))
		for (uint32_t i = 0; i < runtime_session->executions.files && !found; i++)
			if (backing_of(i)->fd && backing_of(i)->inode == status.st_ino)
				found = i + 1;
	errno = saved_errno;
	return found;
}

uint32_t world_make_heap(uint64_t size)
{
	static const char path[] = "(heap)"; /* which no file has */
	struct world_change change = { .operation = WORLD_SIZE, .size = size };
	bool locked = lock();
	uint32_t file = new_file(path, false);
	char backing[64];
	int fd;

	if (!take_backing(file)) {
		unlock(locked);
		return 0;
	}
	runtime_session->executions.file[file].pm = true;
	note_change(WORLD_CREATE, file, path, NULL);
	change.file = file;
	log_world(&change, NULL, HISTORY_JOINED);
	backing_path(backing_of(file)->fd, backing);
	fd = raw_open(backing, O_RDWR);
	syscall(SYS_ftruncate, fd, size);
	syscall(SYS_close, fd);
	unlock(locked);
	return file + 1;
}

bool world_has(uint32_t file)
{
	return file && backing_of(file - 1)->fd;
}

int world_open_backing(uint32_t file)
{
	char path[64];

	backing_path(backing_of(file)->fd, path);
	return raw_open(path, backing_of(file)->shared ? O_RDONLY : O_RDWR);
}

bool world_is_shared(uint32_t file)
{
	return file && backing_of(file - 1)->shared;
}

/* Only for PM: ordinary files were copied when they were opened. */
void world_make_own(int fd)
{
	uint32_t file = world_file_of(fd);
	char path[64];
	off_t at;
	int own;
	bool locked;

	if (!file || !backing_of(file - 1)->shared)
		return;
	at = lseek(fd, 0, SEEK_CUR);
	locked = lock();
	backing_path(backing_of(file - 1)->fd, path);
	if (copy_into(file - 1, path)) {
		backing_path(backing_of(file - 1)->fd, path);
		own = raw_open(path, O_RDWR);
		recovery_leave_image(file - 1, own);
		syscall(SYS_dup2, own, fd);
		syscall(SYS_close, own);
		lseek(fd, at, SEEK_SET);
	}
	unlock(locked);
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
	canonical(AT_FDCWD, path, result);
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

	if (!runtime_execution || !canonical(AT_FDCWD, given, path))
		return false;
	length = strlen(path);
	for (uint32_t i = 0; i < world()->entries; i++)
		if (strncmp(world()->entry[i].path, path, length) == 0 &&
		    world()->entry[i].path[length] == '/')
			return true;
	return false;
}

/* ---- names ---- */

int world_unlink(int directory, const char *given, int (*real)(const char *path))
{
	char path[PATH_MAX];
	const struct world_entry *entry;
	struct stat status;
	bool locked;

	if (!runtime_execution || !canonical(directory, given, path) || is_outside(path))
		return real(given);
	locked = lock();
	entry = find_entry(path);
	note_asked(path, entry);
	if ((entry && entry->kind != WORLD_FILE) ||
	    (!entry && (syscall(SYS_lstat, path, &status) < 0 || !S_ISREG(status.st_mode)))) {
		unlock(locked);
		if (!entry)
			return real(given);
		errno = entry->kind == WORLD_DIRECTORY ? EISDIR : ENOENT;
		return -1;
	}
	note_change(WORLD_UNLINK, 0, path, NULL);
	set_entry(path, WORLD_ABSENT, 0);
	unlock(locked);
	return 0;
}

int world_rename(int from_directory, const char *given_from, int to_directory, const char *given_to)
{
	char from[PATH_MAX], to[PATH_MAX];
	struct world_name name;
	struct stat status;
	bool locked;

	if (!runtime_execution || !canonical(from_directory, given_from, from) ||
	    !canonical(to_directory, given_to, to) || is_outside(from) || is_outside(to))
		return syscall(SYS_renameat, from_directory, given_from, to_directory, given_to);
	world_path(AT_FDCWD, from, WORLD_CHANGE, &name);
	if (!name.file) {
		if (syscall(SYS_stat, from, &status) == 0 && S_ISDIR(status.st_mode))
			session_limit(runtime_session, thread_owner(),
				      "the program renamed a directory, which was not undone");
		return syscall(SYS_renameat, from_directory, given_from, to_directory, given_to);
	}
	locked = lock();
	note_change(WORLD_RENAME, name.file - 1, from, to);
	set_entry(from, WORLD_ABSENT, 0);
	set_entry(to, WORLD_FILE, name.file - 1);
	unlock(locked);
	return 0;
}

static bool is_empty_directory(const char *path)
{
	char entries[256];
	int fd = raw_open(path, O_RDONLY | O_DIRECTORY);
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

	if (!runtime_execution || !canonical(AT_FDCWD, given, path) || is_outside(path))
		return real(given);
	locked = lock();
	entry = find_entry(path);
	note_asked(path, entry);
	ours = entry ? entry->kind == WORLD_DIRECTORY : is_empty_directory(path);
	if (ours) {
		note_change(WORLD_UNLINK, 0, path, NULL);
		set_entry(path, WORLD_ABSENT, 0);
	}
	unlock(locked);
	return ours ? 0 : real(given);
}

int world_mkdir(int directory, const char *given, mode_t mode)
{
	char path[PATH_MAX];
	const struct world_entry *entry;
	struct stat status;
	bool locked;
	int result = -1;

	if (!runtime_execution || !canonical(directory, given, path) || is_outside(path))
		return syscall(SYS_mkdirat, directory, given, mode);
	locked = lock();
	entry = find_entry(path);
	note_asked(path, entry);
	if (entry ? entry->kind != WORLD_ABSENT : syscall(SYS_lstat, path, &status) == 0) {
		errno = EEXIST;
	} else if (!can_create_in(path)) {
		errno = ENOENT;
	} else {
		note_change(WORLD_MKDIR, 0, path, NULL);
		set_entry(path, WORLD_DIRECTORY, 0);
		result = 0;
	}
	unlock(locked);
	return result;
}
