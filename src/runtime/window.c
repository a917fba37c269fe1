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

#include "binary/binary.h"
#include "model/spin.h"
#include "fibers/fibers.h"
#include "heap/heap.h"
#include "runtime/execution.h"
#include "symbolic/symbolic.h"
#include "runtime/hooks.h"

static const uint64_t page = 4096;

uintptr_t window_low, window_high;
uint64_t window_heap;

static void *raw_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
	return (void *)syscall(SYS_mmap, address, length, protection, flags, fd, offset);
}

static bool lies_in_window(const void *p)
{
	return (uintptr_t)p >> PERDURE_WINDOW_SHIFT == PERDURE_WINDOW_INDEX;
}

static uint64_t round_up(uint64_t size)
{
	return (size + page - 1) & ~(page - 1);
}

/* ---- the table of ranges; the session's lock is held ---- */

static bool is_ours(const struct session_range *range)
{
	return range->file && range->image == runtime_image;
}

static bool overlaps(const struct session_range *range, uint64_t start, uint64_t end)
{
	return range->file && range->start < end && start < range->end;
}

uint64_t window_mapped(uint64_t start, uint64_t size)
{
	const struct session *session = runtime_session;
	uint64_t end = start, before;

	if (window_has((void *)start, size))
		return size;
	do {
		before = end;
		for (uint32_t i = 0; i < session->ranges; i++)
			if (is_ours(&session->range[i]) && session->range[i].start <= end &&
			    session->range[i].end > end)
				end = session->range[i].end;
	} while (end > before && end - start < size);
	return end - start < size && start < HEAP_BASE ? end - start : size;
}

static struct session_range *range_new(struct session *session)
{
	for (uint32_t i = 0; i < session->ranges; i++)
		if (!session->range[i].file)
			return &session->range[i];
	if (session->ranges == SESSION_RANGES) {
		session_limit(session, thread_owner(),
			      "too many mappings of PM to follow them all");
		return NULL;
	}
	return &session->range[session->ranges++];
}

static void range_add(struct session *session, const struct session_range *range)
{
	struct session_range *slot;

	for (uint32_t i = 0; i < session->ranges; i++) {
		slot = &session->range[i];
		if (slot->file == range->file && slot->image == range->image &&
		    slot->start == range->start && slot->end == range->end &&
		    slot->protection == range->protection) {
			slot->count += range->count;
			return;
		}
	}
	if (range->start < range->end && (slot = range_new(session)))
		*slot = *range;
}

/* One of our mappings at this address; an exact one if there is one. */
static struct session_range *range_at(struct session *session, uint64_t at, uint64_t end)
{
	struct session_range *found = NULL;

	for (uint32_t i = 0; i < session->ranges; i++) {
		struct session_range *range = &session->range[i];

		if (!is_ours(range) || range->start > at || range->end <= at)
			continue;
		if (range->start == at && range->end == end)
			return range;
		found = range;
	}
	return found;
}

/*
 * The program unmaps [start, end) of one of its mappings. Each of them has the same address here,
 * so one of those that cover a page loses it; the others keep it.
 */
static void range_remove(struct session *session, uint64_t start, uint64_t end)
{
	while (start < end) {
		struct session_range *range = range_at(session, start, end), part;
		uint64_t stop = end;

		if (!range) { /* nothing here: go on where something is */
			for (uint32_t i = 0; i < session->ranges; i++)
				if (is_ours(&session->range[i]) &&
				    session->range[i].start > start &&
				    session->range[i].start < stop)
					stop = session->range[i].start;
			start = stop;
			continue;
		}
		part = *range;
		part.count = 1;
		stop = part.end < end ? part.end : end;
		if (--range->count == 0)
			range->file = 0;
		range_add(session, &(struct session_range){ part.file, part.image, part.start,
							    start, 1, part.protection });
		range_add(session, &(struct session_range){ part.file, part.image, stop, part.end,
							    1, part.protection });
		start = stop;
	}
}

/* What any of our mappings that touch [start, end) allows. */
static int range_protection(const struct session *session, uint64_t start, uint64_t end)
{
	int protection = 0;

	for (uint32_t i = 0; i < session->ranges; i++)
		if (is_ours(&session->range[i]) && overlaps(&session->range[i], start, end))
			protection |= session->range[i].protection;
	return protection;
}

/* A page that is mapped more than once allows what any of its mappings allows. */
static void apply_protections(struct session *session, uint64_t start, uint64_t end)
{
	for (uint32_t i = 0; i < session->ranges; i++) {
		const struct session_range *range = &session->range[i];
		uint64_t from = range->start > start ? range->start : start;
		uint64_t to = range->end < end ? range->end : end;

		if (is_ours(range) && from < to)
			syscall(SYS_mprotect, from, to - from, range_protection(session, from, to));
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

static bool any_excluded;

/* Ordinary memory where PM was, or PM again. */
static void exclude(uint64_t start, uint64_t end, bool on)
{
	struct session_thread *thread = on || any_excluded ? thread_enter() : NULL;

	if (!thread)
		return;
	any_excluded = true;
	lines_exclude(&runtime_session->lines, &thread->lines, start, end - start, on);
	thread_leave();
}

static void note_mapped(struct session_file *file, uint64_t start, uint64_t length, int protection)
{
	struct session *session = runtime_session;
	struct session_thread *thread;
	bool locked;

	if (session->ranges > SESSION_RANGES / 2)
		window_end_dead_images();
	locked = spin_lock(&session->lock, thread_owner());
	range_add(session, &(struct session_range){
				   .file = file - session->file + 1,
				   .image = runtime_image,
				   .start = start,
				   .end = start + length,
				   .count = 1,
				   .protection = protection,
			   });
	apply_protections(session, start, start + length);
	if (start + length - file->base > file->used)
		file->used = start + length - file->base;
	session->pm_mapped++;
	if (protection & PROT_WRITE) {
		window_high = 0; /* never a range that is half the old one */
		window_low = start;
		window_high = start + length;
	}
	if (locked)
		spin_unlock(&session->lock);
	if (session->listening && (thread = thread_enter())) {
		tell(thread, PERDURE_EVENT_MAP, 0, (void *)start, length, 0);
		thread_leave();
	}
}

/* What was mapped here of other files is not any more: the parts of a pool set lie in one range. */
static void replace_others(const struct session_file *file, uint64_t start, uint64_t end)
{
	struct session *session = runtime_session;
	bool locked = spin_lock(&session->lock, thread_owner());
	uint32_t own = file - session->file + 1;

	for (uint32_t i = 0; i < session->ranges; i++) {
		struct session_range *range = &session->range[i], old = *range;

		if (!is_ours(range) || range->file == own || !overlaps(range, start, end))
			continue;
		range->file = 0;
		range_add(session, &(struct session_range){ old.file, old.image, old.start, start,
							    old.count, old.protection });
		range_add(session, &(struct session_range){ old.file, old.image, end, old.end,
							    old.count, old.protection });
	}
	if (locked)
		spin_unlock(&session->lock);
}

static void *map_file(uint64_t start, size_t length, int protection, int flags, int fd,
		      off_t offset)
{
	flags = (flags & ~MAP_TYPE) | (runtime_explores ? MAP_PRIVATE : MAP_SHARED) | MAP_FIXED;
	flags &= ~(MAP_SYNC | MAP_FIXED_NOREPLACE);
	return raw_mmap((void *)start, length, protection, flags, fd, offset);
}

/* The header of a pool set's further part would lie before its data: in the part before. */
static bool is_taken(const struct session_file *file, uint64_t start, uint64_t end)
{
	const struct session *session = runtime_session;
	uint32_t own = file - session->file + 1;

	for (uint32_t i = 0; i < session->ranges; i++)
		if (is_ours(&session->range[i]) && session->range[i].file != own &&
		    overlaps(&session->range[i], start, end))
			return true;
	return false;
}

/* A program that asks for an address may rely on it. */
static bool is_free_hint(const void *hint)
{
	return hint && lies_in_window(hint) &&
	       (uintptr_t)hint - SESSION_WINDOW >= runtime_session->window_used;
}

static void *map_mirrored(void *hint, size_t length, int protection, int flags, int fd,
			  off_t offset);

static void *map_pm(void *hint, size_t length, int protection, int flags, int fd, off_t offset)
{
	struct session_file *file;
	uint64_t start, size = round_up(length);
	void *result;

	if (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) && !lies_in_window(hint))
		return map_mirrored(hint, length, protection, flags, fd, offset);
	binary_needed();
	if (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) || is_free_hint(hint))
		files_place(fd, (uint64_t)hint - offset, offset + size);
	else if (hint && !lies_in_window(hint))
		session_limit(
			runtime_session, thread_owner(),
			"the program asked for an address of its own for a PM file, and got another "
			"one: PM must lie in 0x200000000000-0x20ffffffffff to be seen");
	file = files_find(fd, offset + size);
	if (!file || offset + size > file->reserved) {
		session_limit(
			runtime_session, thread_owner(),
			"a PM file did not fit into Perdure's window: accesses to it were not seen");
		return raw_mmap(hint, length, protection, flags, fd, offset);
	}
	start = file->base + offset;
	if (runtime_recovers && file->world)
		return recovery_map(file, fd, size, protection, offset);
	if ((runtime_logs || runtime_explores) && file->world)
		runtime_session->executions.file[file->world - 1].pm = true;
	if (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) && (uint64_t)hint != start) {
		session_limit(
			runtime_session, thread_owner(),
			"a PM file was mapped with MAP_FIXED inside another one: persistence is "
			"followed by address there");
		start = (uint64_t)hint;
	} else if (!(flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) &&
		   is_taken(file, start, start + size)) {
		struct session_file *second = files_second_place(file, offset, size);

		file = second ? second : file;
		start = second ? second->base : start;
	}
	result = map_file(start, size, protection, flags, fd, offset);
	if (runtime_recovers)
		return result;
	if (result != MAP_FAILED) {
		exclude(start, start + size, false);
		replace_others(file, start, start + size);
		note_mapped(file, start, size, protection);
	}
	return result;
}

static void unmap_mirrored(uint64_t start, uint64_t end);

/* Where the program insists on it, and in the window. */
static void *map_mirrored(void *hint, size_t length, int protection, int flags, int fd,
			  off_t offset)
{
	enum { ANONYMOUS = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE };
	uint64_t start = (uintptr_t)hint, size = round_up(length);
	void *mirror = MAP_FAILED, *result;

	if (binary_ask_also(start))
		mirror = map_pm(NULL, length, protection,
				flags & ~(MAP_FIXED | MAP_FIXED_NOREPLACE), fd, offset);
	else
		session_limit(
			runtime_session, thread_owner(),
			"a PM file was mapped with MAP_FIXED outside Perdure's window, and code "
			"does not look there: accesses to that mapping were not seen; see --pm-at");
	if (runtime_recovers && mirror != MAP_FAILED && lies_in_window(mirror))
		result = raw_mmap(hint, length, PROT_NONE, (flags & ~MAP_TYPE) | ANONYMOUS, -1, 0);
	else
		result = raw_mmap(hint, length, protection, flags, fd, offset);
	if (mirror == MAP_FAILED || !lies_in_window(mirror) || result == MAP_FAILED) {
		if (mirror != MAP_FAILED)
			munmap(mirror, length);
		return result;
	}
	unmap_mirrored(start, start + size);
	if (!mirror_add(hint, size, mirror, protection))
		session_limit(runtime_session, thread_owner(),
			      "too many PM files were mapped with MAP_FIXED outside Perdure's "
			      "window: accesses to some were not seen");
	if (runtime_recovers)
		recovery_mirror((uint64_t)mirror);
	return result;
}

/*
 * libpmem2 reserves address space first and maps the file into it: the reservation must lie in
 * the window already.
 */
static void *reserve(size_t length, int flags)
{
	enum { TRIES = 64 };

	/* The program may have put something there itself, at a place that was given back. */
	for (int i = 0; i < TRIES; i++) {
		uint64_t start = files_reserve(round_up(length));
		void *result;

		if (!start)
			break;
		result = raw_mmap((void *)start, length, PROT_NONE,
				  flags | MAP_FIXED_NOREPLACE | MAP_NORESERVE, -1, 0);
		if (result != MAP_FAILED)
			return result;
	}
	return raw_mmap(NULL, length, PROT_NONE, flags, -1, 0);
}

static int unmap_pm(uint64_t start, uint64_t end);

/* What is mapped over PM takes its place. */
static void *map_ordinary(void *address, size_t length, int protection, int flags, int fd,
			  off_t offset)
{
	uint64_t start = (uintptr_t)address, end = start + round_up(length);

	if (runtime_session && runtime_mirrors && flags & MAP_FIXED && !lies_in_window(address))
		unmap_mirrored(start, end);
	if (runtime_session && flags & MAP_FIXED && lies_in_window(address) && start % page == 0 &&
	    !runtime_recovers && range_at(runtime_session, start, end)) {
		unmap_pm(start, end);
		exclude(start, end, true);
	}
	return raw_mmap(address, length, protection, flags, fd, offset);
}

static void *map_one(void *address, size_t length, int protection, int flags, int fd, off_t offset,
		     const struct frame *frame)
{
	bool shared = (flags & MAP_TYPE) == MAP_SHARED || (flags & MAP_TYPE) == MAP_SHARED_VALIDATE;

	if (protection & PROT_EXEC && flags & MAP_ANONYMOUS)
		fibers_note_generated_code();
	if (runtime_session && flags & MAP_ANONYMOUS && !(protection & PROT_WRITE) && length &&
	    !(flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) && modules_is_libpmem(frame))
		return reserve(length, flags);
	if (runtime_explores && flags & MAP_ANONYMOUS && shared)
		flags = (flags & ~MAP_TYPE) | MAP_PRIVATE; /* or all paths would share it */
	if (!runtime_session || flags & MAP_ANONYMOUS || fd < 0 || !shared || !length)
		return map_ordinary(address, length, protection, flags, fd, offset);
	if (files_is_pm(fd, flags)) {
		if (!(flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) && modules_is_libpmem(frame))
			address = NULL; /* it takes what it gets */
		return map_pm(address, length, protection, flags, fd, offset);
	}
	files_note_unmatched(fd);
	if (runtime_logs && protection & PROT_WRITE && world_file_of(fd))
		session_limit(
			runtime_session, thread_owner(),
			"an ordinary file was mapped to be written: recoveries do not see what "
			"was written there; if it is PM, name it with --pm");
	return map_ordinary(address, length, protection, flags, fd, offset);
}

/* What was there before has nothing to do with it. */
static void *map_any(void *address, size_t length, int protection, int flags, int fd, off_t offset,
		     const struct frame *frame)
{
	void *result = map_one(address, length, protection, flags, fd, offset, frame);

	if (symbolic_on && result != MAP_FAILED) {
		memory_clear(result, length);
		inputs_mapped(fd, result, offset, length);
	}
	return result;
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
	const struct session_file *file = session_file_at(session, start);
	struct session_thread *thread = thread_enter();

	if (!thread)
		return;
	reservations_drop(&session->reservations, &session->lines, &thread->lines, runtime_image,
			  start, end);
	if (file && file->unjudged)
		lines_forget(&session->lines, &thread->lines, start, end - start);
	else
		lines_lose(&session->lines, &thread->lines, start, end - start);
	tell(thread, PERDURE_EVENT_UNMAP, 0, (void *)start, end - start, 0);
	thread_leave();
}

static int unmap_pm(uint64_t start, uint64_t end)
{
	struct session *session = runtime_session;
	bool locked = spin_lock(&session->lock, thread_owner());
	bool reserved = !range_at(session, start, end);
	uint64_t from, gap_start, gap_end;
	int result = 0;

	window_high = 0;
	range_remove(session, start, end);
	for (from = start; first_gap(session, from, end, true, &gap_start, &gap_end);
	     from = gap_end)
		if (syscall(SYS_munmap, gap_start, gap_end - gap_start) < 0)
			result = -1;
	for (from = start; first_gap(session, from, end, false, &gap_start, &gap_end);
	     from = gap_end)
		lose(session, gap_start, gap_end);
	apply_protections(session, start, end);
	if (reserved)
		files_release(start, end);
	if (locked)
		spin_unlock(&session->lock);
	return result;
}

/* The program has something else there now, or nothing. */
static void unmap_mirrored(uint64_t start, uint64_t end)
{
	struct mirror_part part;

	while (runtime_mirrors && mirror_take(start, end, &part))
		munmap((void *)part.mirror, part.size);
}

PUBLIC int munmap(void *address, size_t length)
{
	if (runtime_session && !lies_in_window(address) && length)
		unmap_mirrored((uintptr_t)address, (uintptr_t)address + round_up(length));
	if (!runtime_session || !lies_in_window(address) || !length || (uintptr_t)address % page)
		return syscall(SYS_munmap, address, length);
	if (runtime_recovers)
		return recovery_unmap((uintptr_t)address) ? 0
							  : syscall(SYS_munmap, address, length);
	return unmap_pm((uintptr_t)address, (uintptr_t)address + round_up(length));
}

/* The end of what this process has mapped without a hole from `start` on. */
static uint64_t mapped_end(struct session *session, uint64_t start)
{
	struct session_range *range;

	while ((range = range_at(session, start, start)))
		start = range->end;
	return start;
}

/* Grows in place, over what may be mapped there already: PM does not move. */
static bool grow(struct session *session, uint64_t start, uint64_t old_size, uint64_t new_size)
{
	struct session_range *range = range_at(session, start, start + old_size);
	uint64_t end = mapped_end(session, start), wanted = start + new_size;
	struct session_file *file;

	if (!range)
		return false;
	file = &session->file[range->file - 1];
	if (wanted > file->base + file->reserved)
		return false;
	if (wanted > end &&
	    syscall(SYS_mremap, end - page, page, page + wanted - end, 0) != (long)(end - page))
		return false;
	range_add(session, &(struct session_range){ range->file, range->image, start + old_size,
						    wanted, 1, range->protection });
	if (wanted - file->base > file->used)
		file->used = wanted - file->base;
	return true;
}

static void *remap_pm(uint64_t start, uint64_t old_size, uint64_t new_size, int flags)
{
	struct session *session = runtime_session;
	const struct session_file *file;
	bool locked, grown;

	window_high = 0;

	if (new_size <= old_size) {
		if (new_size < old_size)
			unmap_pm(start + new_size, start + old_size);
		return (void *)start;
	}
	locked = spin_lock(&session->lock, thread_owner());
	grown = grow(session, start, old_size, new_size);
	if (locked)
		spin_unlock(&session->lock);
	if (grown)
		return (void *)start;
	file = session_file_at(session, start);
	if (file)
		session->file[file - session->file].unjudged = true;
	session_limit(session, thread_owner(),
		      "a PM file outgrew its place in Perdure's window: it was not judged");
	return (void *)syscall(SYS_mremap, start, old_size, new_size, flags);
}

PUBLIC void *mremap(void *old_address, size_t old_size, size_t new_size, int flags, ...)
{
	void *new_address = NULL;
	va_list arguments;

	va_start(arguments, flags);
	if (flags & MREMAP_FIXED)
		new_address = va_arg(arguments, void *);
	va_end(arguments);
	if (runtime_session && runtime_mirrors && mirror_has(old_address)) {
		session_limit(
			runtime_session, thread_owner(),
			"PM that was mapped with MAP_FIXED outside Perdure's window was moved "
			"or enlarged: accesses to it were not seen");
		unmap_mirrored((uintptr_t)old_address, (uintptr_t)old_address + round_up(old_size));
	}
	if (runtime_recovers && in_window(old_address))
		return recovery_remap(old_address, new_size);
	if (runtime_session && in_window(old_address) && !(flags & MREMAP_FIXED))
		return remap_pm((uintptr_t)old_address, round_up(old_size), round_up(new_size),
				flags);
	if (runtime_session && in_window(old_address))
		session_limit(runtime_session, thread_owner(),
			      "PM was moved with MREMAP_FIXED: accesses to it were not seen");
	return (void *)syscall(SYS_mremap, old_address, old_size, new_size, flags, new_address);
}

static bool mapped_once(const struct session *session, uint64_t start, uint64_t end)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < session->ranges; i++)
		if (is_ours(&session->range[i]) && overlaps(&session->range[i], start, end))
			count += session->range[i].count;
	return count <= 1;
}

/* A page that is mapped more than once keeps what its other mappings allow. */
PUBLIC int mprotect(void *address, size_t length, int protection)
{
	uint64_t start = (uintptr_t)address, end = start + round_up(length);
	struct session *session = runtime_session;
	struct session_range *range;
	bool locked;

	if (protection & PROT_EXEC)
		fibers_note_generated_code();
	if (session && runtime_mirrors && mirror_has(address))
		mprotect(mirror_find(address), length, protection);
	if (!session || !lies_in_window(address) || runtime_recovers)
		return syscall(SYS_mprotect, address, length, protection);
	window_high = 0;
	locked = spin_lock(&session->lock, thread_owner());
	range = range_at(session, start, end);
	if (range && range->start == start && range->end == end && range->count == 1)
		range->protection = protection;
	else if (range && mapped_once(session, start, end))
		range = NULL; /* a part of a single mapping: as the program says */
	if (locked)
		spin_unlock(&session->lock);
	if (range)
		protection |= range_protection(session, start, end);
	return syscall(SYS_mprotect, address, length, protection);
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

void window_copy_ranges(uint32_t from_image, uint32_t to_image)
{
	struct session *session = runtime_session;
	uint32_t count = session->ranges;

	for (uint32_t i = 0; i < count; i++) {
		struct session_range range = session->range[i];

		if (!range.file || range.image != from_image)
			continue;
		range.image = to_image;
		range_add(session, &range);
	}
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
