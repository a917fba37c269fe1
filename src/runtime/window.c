/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mmap and its relatives. A PM file has one mapping in the window: every shared mmap of it returns
 * the file's base plus the offset, however often the program maps it, so that one byte of PM has
 * one address. Private mappings of a PM file are ordinary memory.
 *
 * The mapping is the user's own file: what the program writes is there afterwards.
 */
#include "runtime/runtime.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "model/spin.h"
#include "session/trace.h"

static const uint64_t page = 4096;

static void *raw_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
	return (void *)syscall(SYS_mmap, address, length, protection, flags, fd, offset);
}

static uint64_t round_up(uint64_t size)
{
	return (size + page - 1) & ~(page - 1);
}

/* ---- the table of ranges; the session's lock is held ---- */

static struct session_range *range_new(struct session *session)
{
	for (uint32_t i = 0; i < session->ranges; i++)
		if (!session->range[i].file)
			return &session->range[i];
	if (session->ranges == SESSION_RANGES)
		return NULL;
	return &session->range[session->ranges++];
}

static void range_add(struct session *session, const struct session_range *range)
{
	struct session_range *slot = range_new(session);

	if (slot)
		*slot = *range;
}

static bool overlaps(const struct session_range *range, uint64_t start, uint64_t end)
{
	return range->file && range->start < end && start < range->end;
}

static struct session_range *range_exact(struct session *session, uint64_t start, uint64_t end)
{
	for (uint32_t i = 0; i < session->ranges; i++) {
		struct session_range *range = &session->range[i];

		if (range->file && range->image == runtime_image && range->start == start &&
		    range->end == end)
			return range;
	}
	return NULL;
}

/* Cuts [start, end) out of this process's ranges. */
static void range_cut(struct session *session, uint64_t start, uint64_t end)
{
	uint32_t count = session->ranges;

	for (uint32_t i = 0; i < count; i++) {
		struct session_range *range = &session->range[i];
		struct session_range tail = *range;

		if (!overlaps(range, start, end) || range->image != runtime_image)
			continue;
		if (range->start < start)
			range->end = start;
		else
			range->file = 0;
		tail.start = end;
		if (tail.start < tail.end)
			range_add(session, &tail);
	}
}

/* The first part of [start, end) that no range covers (of any image, or of ours only). */
static bool first_gap(const struct session *session, uint64_t start, uint64_t end, bool ours,
		      uint64_t *gap_start, uint64_t *gap_end)
{
	bool moved = true;

	while (moved && start < end) {
		moved = false;
		for (uint32_t i = 0; i < session->ranges; i++) {
			const struct session_range *range = &session->range[i];

			if (!range->file || range->start > start || range->end <= start ||
			    (ours && range->image != runtime_image))
				continue;
			start = range->end;
			moved = true;
		}
	}
	if (start >= end)
		return false;
	*gap_start = start;
	*gap_end = end;
	for (uint32_t i = 0; i < session->ranges; i++) {
		const struct session_range *range = &session->range[i];

		if (overlaps(range, start, *gap_end) && (!ours || range->image == runtime_image))
			*gap_end = range->start;
	}
	return true;
}

/* ---- mapping ---- */

static void note_mapped(struct session_file *file, uint64_t start, uint64_t length)
{
	struct session *session = runtime_session;
	bool locked = spin_lock(&session->lock, thread_owner());
	struct session_range *range = range_exact(session, start, start + length);

	if (range)
		range->count++;
	else
		range_add(session, &(struct session_range){
					   .file = file - session->file + 1,
					   .image = runtime_image,
					   .start = start,
					   .end = start + length,
					   .count = 1,
				   });
	if (start + length - file->base > file->used)
		file->used = start + length - file->base;
	session->pm_mapped++;
	if (locked)
		spin_unlock(&session->lock);
}

/* A reservation that reaches beyond the file must not fault later when the file grows. */
static void *map_file(uint64_t start, size_t length, int protection, int flags, int fd,
		      off_t offset)
{
	void *result;

	flags = (flags & ~MAP_TYPE) | MAP_SHARED | MAP_FIXED;
	flags &= ~(MAP_SYNC | MAP_FIXED_NOREPLACE);
	result = raw_mmap((void *)start, length, protection, flags, fd, offset);
	return result;
}

static void *map_pm(void *hint, size_t length, int protection, int flags, int fd, off_t offset)
{
	struct session_file *file;
	uint64_t start, size = round_up(length);
	void *result;

	if (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) && !in_window(hint)) {
		session_limit(
			runtime_session, thread_owner(),
			"a PM file was mapped with MAP_FIXED outside Perdure's window: accesses "
			"to that mapping were not seen");
		return raw_mmap(hint, length, protection, flags, fd, offset);
	}
	if (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE))
		files_place(fd, (uint64_t)hint - offset, offset + size);
	file = files_find(fd, offset + size);
	if (!file || offset + size > file->reserved) {
		session_limit(
			runtime_session, thread_owner(),
			"a PM file did not fit into Perdure's window: accesses to it were not seen");
		return raw_mmap(hint, length, protection, flags, fd, offset);
	}
	start = file->base + offset;
	if (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) && (uint64_t)hint != start) {
		session_limit(
			runtime_session, thread_owner(),
			"a PM file was mapped with MAP_FIXED inside another one: persistence is "
			"followed by address there");
		start = (uint64_t)hint;
	}
	result = map_file(start, size, protection, flags, fd, offset);
	if (result != MAP_FAILED)
		note_mapped(file, start, size);
	return result;
}

/*
 * libpmem2 reserves address space first and maps the file into it: the reservation must lie in
 * the window already.
 */
static void *reserve(size_t length, int flags)
{
	uint64_t start = files_reserve(round_up(length));

	if (!start)
		return raw_mmap(NULL, length, PROT_NONE, flags, -1, 0);
	return raw_mmap((void *)start, length, PROT_NONE, flags | MAP_FIXED | MAP_NORESERVE, -1, 0);
}

static void *map_any(void *address, size_t length, int protection, int flags, int fd, off_t offset,
		     const struct frame *frame)
{
	bool shared = (flags & MAP_TYPE) == MAP_SHARED || (flags & MAP_TYPE) == MAP_SHARED_VALIDATE;

	if (runtime_session && flags & MAP_ANONYMOUS && !(protection & PROT_WRITE) && length &&
	    !(flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) && modules_is_libpmem(frame))
		return reserve(length, flags);
	if (!runtime_session || flags & MAP_ANONYMOUS || fd < 0 || !shared || !length)
		return raw_mmap(address, length, protection, flags, fd, offset);
	if (files_is_pm(fd, flags))
		return map_pm(address, length, protection, flags, fd, offset);
	files_note_unmatched(fd);
	return raw_mmap(address, length, protection, flags, fd, offset);
}

PUBLIC void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
	return map_any(address, length, protection, flags, fd, offset, FRAME);
}

PUBLIC void *mmap64(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
	return map_any(address, length, protection, flags, fd, offset, FRAME);
}

/* ---- unmapping ---- */

static void lose(struct session *session, uint64_t start, uint64_t end)
{
	struct session_thread *thread = thread_enter();

	if (!thread)
		return;
	lines_lose(&session->lines, &thread->lines, start, end - start);
	thread_leave();
}

static int unmap_pm(uint64_t start, uint64_t end)
{
	struct session *session = runtime_session;
	bool locked = spin_lock(&session->lock, thread_owner());
	struct session_range *range = range_exact(session, start, end);
	uint64_t from = start, gap_start, gap_end;
	int result = 0;

	if (range) {
		if (--range->count == 0)
			range->file = 0;
	} else {
		range_cut(session, start, end);
	}
	while (first_gap(session, from, end, true, &gap_start, &gap_end)) {
		if (syscall(SYS_munmap, gap_start, gap_end - gap_start) < 0)
			result = -1;
		from = gap_end;
	}
	for (from = start; first_gap(session, from, end, false, &gap_start, &gap_end);
	     from = gap_end)
		lose(session, gap_start, gap_end);
	if (!range)
		files_release(start, end);
	if (locked)
		spin_unlock(&session->lock);
	return result;
}

PUBLIC int munmap(void *address, size_t length)
{
	if (!runtime_session || !in_window(address) || !length || (uintptr_t)address % page)
		return syscall(SYS_munmap, address, length);
	return unmap_pm((uintptr_t)address, (uintptr_t)address + round_up(length));
}

/* Grows in place or not at all: PM does not move. */
static void *remap_pm(uint64_t start, uint64_t old_size, uint64_t new_size)
{
	struct session *session = runtime_session;
	struct session_range *range;
	bool locked;
	long result;

	if (new_size <= old_size) {
		if (new_size < old_size)
			unmap_pm(start + new_size, start + old_size);
		return (void *)start;
	}
	result = syscall(SYS_mremap, start, old_size, new_size, 0);
	if (result < 0)
		return MAP_FAILED;
	locked = spin_lock(&session->lock, thread_owner());
	range = range_exact(session, start, start + old_size);
	if (range) {
		struct session_file *file = &session->file[range->file - 1];

		range->end = start + new_size;
		if (range->end - file->base > file->used)
			file->used = range->end - file->base;
	}
	if (locked)
		spin_unlock(&session->lock);
	return (void *)result;
}

PUBLIC void *mremap(void *old_address, size_t old_size, size_t new_size, int flags, ...)
{
	void *new_address = NULL;
	va_list arguments;

	va_start(arguments, flags);
	if (flags & MREMAP_FIXED)
		new_address = va_arg(arguments, void *);
	va_end(arguments);
	if (runtime_session && in_window(old_address) && !(flags & MREMAP_FIXED))
		return remap_pm((uintptr_t)old_address, round_up(old_size), round_up(new_size));
	return (void *)syscall(SYS_mremap, old_address, old_size, new_size, flags, new_address);
}

/* ---- persistence by system call ---- */

PUBLIC int msync(void *address, size_t length, int flags)
{
	int result = REAL(msync)(address, length, flags);

	if (runtime_session && result == 0 && flags & MS_SYNC && in_window(address))
		event_persist(address, round_up(length), FRAME);
	return result;
}

static void persist_file(int fd, const struct frame *frame)
{
	struct session_file *file;

	if (!runtime_session || !runtime_session->files)
		return;
	file = files_find(fd, 0);
	if (file)
		event_persist((void *)file->base, file->used, frame);
}

PUBLIC int fsync(int fd)
{
	int result = REAL(fsync)(fd);

	if (result == 0)
		persist_file(fd, FRAME);
	return result;
}

PUBLIC int fdatasync(int fd)
{
	int result = REAL(fdatasync)(fd);

	if (result == 0)
		persist_file(fd, FRAME);
	return result;
}

static void persist_everything(const struct frame *frame)
{
	struct session *session = runtime_session;

	for (uint32_t i = 0; session && i < session->files; i++)
		if (!session->file[i].heap)
			event_persist((void *)session->file[i].base, session->file[i].used, frame);
}

PUBLIC void sync(void)
{
	REAL(sync)();
	persist_everything(FRAME);
}

PUBLIC int syncfs(int fd)
{
	int result = REAL(syncfs)(fd);

	if (result == 0)
		persist_everything(FRAME);
	return result;
}

/* ---- processes ---- */

void window_after_fork(uint32_t parent_image)
{
	struct session *session = runtime_session;
	bool locked = spin_lock(&session->lock, thread_owner());
	uint32_t count = session->ranges;

	for (uint32_t i = 0; i < count; i++) {
		struct session_range range = session->range[i];

		if (!range.file || range.image != parent_image)
			continue;
		range.image = runtime_image;
		range_add(session, &range);
	}
	if (locked)
		spin_unlock(&session->lock);
}

void window_end_dead_images(void)
{
	struct session *session = runtime_session;

	for (uint32_t i = 0; i < session->images; i++) {
		struct session_image *image = &session->image[i];
		struct session_thread *thread;

		if (i == runtime_image || image->ended)
			continue;
		/* The same process, another image: exec. Or no such process any more. */
		if (image->pid != getpid() && (kill(image->pid, 0) == 0 || errno != ESRCH))
			continue;
		thread = thread_enter();
		if (!thread)
			return;
		session_end_image(session, &thread->lines, i, thread_owner());
		thread_leave();
	}
}
