/* SPDX-License-Identifier: BSD-3-Clause */
#include "session/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "model/spin.h"

#define MAGIC "perdure session"
#define MIB (1ull << 20)
#define GIB (1ull << 30)

/* Sparse: only what is touched takes memory. */
static const uint64_t at_stack_slots = 64 * MIB;
static const uint64_t at_raw_slots = 80 * MIB;
static const uint64_t at_raw_entries = 96 * MIB;
static const uint64_t at_threads = 8 * GIB;
static const uint64_t at_stream = 160 * MIB;
static const uint64_t at_touched = 192 * MIB;
static const uint64_t at_stack_words = 1 * GIB;
static const uint64_t at_stores = 24 * GIB;
static const uint64_t at_flushes = 136 * GIB;
static const uint64_t at_lines = 256 * GIB;
static const uint64_t at_transactions = 1280 * GIB;
static const uint64_t at_log_events = 1536 * GIB;
static const uint64_t at_log_data = 1664 * GIB;
static const uint64_t at_built = 2048 * GIB;
static const uint64_t at_executions = 2304 * GIB;
static const uint64_t at_choices = 2311 * GIB;
static const uint64_t at_reads = 2312 * GIB;
static const uint64_t at_explore = 2544 * GIB;
static const uint64_t session_size = 2560 * GIB;

/* Of each execution: what it reads, and the lines that are uncertain for it. */
static const uint64_t room_for_reads = 1 * GIB;
static const uint64_t room_for_lines = 1 * GIB;
static const uint64_t room_for_index = 512 * MIB;
/* The rest of these two is for a chain of crashes. */
static const uint64_t room_for_contents = 512 * MIB;
static const uint64_t room_for_log = 512 * MIB;

static void *place(uint64_t offset)
{
	return (void *)(SESSION_BASE + offset);
}

/* Raw system calls: the target's runtime interposes the libc functions and calls this. */
static void *map_session(int fd)
{
	void *wanted = (void *)SESSION_BASE;
	long got = syscall(SYS_mmap, wanted, session_size, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, fd, 0L);

	if (got != (long)wanted)
		return NULL;
	syscall(SYS_madvise, wanted, session_size, MADV_DONTDUMP);
	return wanted;
}

/* A quarter for events, an eighth for what was read before them, the rest for bytes. */
static void lay_out_log(struct event_log *log, uint64_t at)
{
	log->event = place(at);
	log->reads = place(at + room_for_log / 4);
	log->data = place(at + room_for_log / 8 * 3);
	log->events_max = room_for_log / 4 / sizeof(*log->event);
	log->bytes_max = room_for_log / 8 * 5;
}

void session_use_executions(struct session *session)
{
	struct executions *all = &session->executions;
	uint64_t each =
		room_for_reads + room_for_lines + room_for_index + room_for_contents + room_for_log;

	all->on = true;
	all->log.event = place(at_log_events);
	all->log.data = place(at_log_data);
	all->log.events_max = 3000000000u;
	all->log.bytes_max = 384 * GIB;
	all->execution = place(at_executions);
	all->schedule.choice = place(at_choices);
	for (uint64_t i = 0; i < EXECUTIONS; i++) {
		struct execution *execution = &all->execution[i];
		uint64_t at = at_reads + i * each;

		execution->read = place(at);
		execution->line = place(at + room_for_reads);
		at += room_for_reads + room_for_lines;
		execution->index = place(at);
		execution->content = place(at + room_for_index);
		lay_out_log(&execution->log, at + room_for_index + room_for_contents);
	}
}

void session_use_explore(struct session *session)
{
	struct explore *explore = place(at_explore);

	_Static_assert(sizeof(struct explore) <= 1 * GIB, "exploring takes too much");
	_Static_assert(sizeof(struct explore_known) * EXPLORE_KNOWN <= 1 * GIB, "and answers");
	_Static_assert(sizeof(struct explore_kept) * EXPLORE_KEPT <= 8 * GIB, "and inputs");
	_Static_assert(sizeof(struct explore_desk) * EXPLORE_SOLVERS <= 4 * GIB, "and solvers");
	session_use_executions(session);
	session->explore = explore;
	explore->on = true;
	explore->weight = place(at_explore + 1 * GIB);
	explore->answer = place(at_explore + 2 * GIB);
	explore->input = place(at_explore + 3 * GIB);
	explore->desk = place(at_explore + 11 * GIB);
}

static bool make_own(int fd, uint64_t offset, uint64_t size)
{
	return syscall(SYS_mmap, place(offset), size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED, fd, offset) != -1;
}

bool session_make_own(struct session *session, const char *path)
{
	int fd = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
	uint64_t own = offsetof(struct session, lines);
	/* From the threads on everything is its own, in one piece: less to copy for a fork. */
	bool done = fd >= 0 && make_own(fd, own, (sizeof(*session) - own + 4095) & -4096ull) &&
		    make_own(fd, at_touched, SESSION_WINDOW_SIZE >> LINES_BLOCK_SHIFT) &&
		    make_own(fd, at_threads, at_explore - at_threads);

	if (fd >= 0)
		syscall(SYS_close, fd);
	return done;
}

static uint64_t built;

void *session_allocate(size_t size)
{
	void *result = place(at_built + built);

	if (size > at_executions - at_built - built)
		return NULL;
	built += (size + 63) & ~(uint64_t)63;
	return result;
}

void session_reset_allocations(void)
{
	built = 0;
}

static void lay_out(struct session *session)
{
	memcpy(session->magic, MAGIC, sizeof(MAGIC));
	session->stacks.slot = place(at_stack_slots);
	session->stacks.word = place(at_stack_words);
	session->raw.slot = place(at_raw_slots);
	session->raw.entry = place(at_raw_entries);
	session->thread = place(at_threads);
	session->stream.slot = place(at_stream);
	session->transactions = place(at_transactions);
	session->lines = (struct lines){
		.base = SESSION_WINDOW,
		.count = SESSION_WINDOW_SIZE / LINES_LINE_SIZE,
		.line = place(at_lines),
		.store = place(at_stores),
		.flush = place(at_flushes),
		.touched = place(at_touched),
		.stores.capacity = (at_flushes - at_stores) / sizeof(struct lines_store),
		.flushes.capacity = (at_lines - at_flushes) / sizeof(struct lines_flush),
	};
}

struct session *session_create(int *fd, char *error, size_t error_size)
{
	struct session *session;

	_Static_assert(sizeof(struct session) < 64 * MIB, "the fixed part has outgrown its place");
	_Static_assert(sizeof(struct session_thread) * SESSION_THREADS < 16 * GIB,
		       "and the threads");
	_Static_assert(sizeof(struct execution) * EXECUTIONS <= 7 * GIB, "and the executions");
	_Static_assert(sizeof(struct stream_slot) * STREAM_SLOTS <= 32 * MIB, "and the stream");
	_Static_assert(sizeof(struct session_transactions) * SESSION_TRANSACTIONS <= 256 * GIB,
		       "and the transactions");
	*fd = memfd_create("perdure-session", MFD_CLOEXEC);
	if (*fd < 0 || ftruncate(*fd, session_size) < 0) {
		snprintf(
			error, error_size,
			"cannot create %llu GiB of sparse shared memory: %s (a limit on file sizes?)",
			session_size / GIB, strerror(errno));
		return NULL;
	}
	session = map_session(*fd);
	if (!session) {
		snprintf(error, error_size,
			 "cannot map the session at %#llx: %s (a limit on address space?)",
			 SESSION_BASE, strerror(errno));
		return NULL;
	}
	lay_out(session);
	return session;
}

struct session *session_attach(const char *path)
{
	struct session *session = NULL;
	int fd = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return NULL;
	session = map_session(fd);
	syscall(SYS_close, fd);
	if (session && memcmp(session->magic, MAGIC, sizeof(MAGIC)) != 0) {
		syscall(SYS_munmap, session, session_size);
		return NULL;
	}
	return session;
}

bool session_is_sound(const struct session *session)
{
	return memcmp(session->magic, MAGIC, sizeof(MAGIC)) == 0 &&
	       session->stacks.slot == place(at_stack_slots) &&
	       session->raw.entry == place(at_raw_entries) &&
	       session->lines.line == place(at_lines) &&
	       (!session->executions.on || (session->executions.log.event == place(at_log_events) &&
					    session->executions.execution == place(at_executions)));
}

const struct session_file *session_file_at(const struct session *session, uint64_t address)
{
	const struct session_file *found = NULL;

	/* A program that writes wildly may have changed the number, too. */
	for (uint32_t i = 0; i < session->files && i < SESSION_FILES; i++) {
		const struct session_file *file = &session->file[i];

		/* The parts of a pool set overlap: the one that starts last was mapped over others.
		 */
		if (file->used && address >= file->base && address < file->base + file->used &&
		    (!found || file->base > found->base))
			found = file;
	}
	return found;
}

const struct session_module *session_module_at(const struct session *session, uint32_t stack_image,
					       uint64_t address)
{
	uint32_t image = stack_image & 0xffff, generation = stack_image >> 16;

	for (uint32_t i = session->modules; i-- > 0;) {
		const struct session_module *module = &session->module[i];

		if (module->image == image && module->generation <= generation &&
		    address >= module->start && address < module->end)
			return module;
	}
	return NULL;
}

void session_limit(struct session *session, uint32_t owner, const char *text)
{
	bool locked = spin_lock(&session->lock, owner);
	uint32_t i;

	for (i = 0; i < session->limits; i++)
		if (strncmp(session->limit[i], text, SESSION_PATH - 1) == 0)
			break;
	if (i == session->limits) {
		if (session->limits == SESSION_LIMITS) {
			session->limits_lost++;
		} else {
			strncpy(session->limit[i], text, SESSION_PATH - 1);
			session->limits++;
		}
	}
	if (locked)
		spin_unlock(&session->lock);
}

struct transactions *session_take_transactions(struct session *session, uint32_t image,
					       const struct lines_thread *thread)
{
	bool locked = spin_lock(&session->lock, thread->owner);
	struct session_transactions *slot = NULL;

	for (uint32_t i = 0; i < SESSION_TRANSACTIONS && !slot; i++)
		if (!session->transactions[i].image)
			slot = &session->transactions[i];
	if (slot) {
		uint32_t used = (uint32_t)(slot - session->transactions) + 1;

		if (used > session->transactions_used)
			session->transactions_used = used;
		transactions_init(&slot->state, slot->range, SESSION_TRANSACTION_RANGES);
		slot->state.reservations = &session->reservations;
		slot->state.process = image;
		slot->state.thread = thread->id;
		slot->image = image + 1;
	}
	if (locked)
		spin_unlock(&session->lock);
	return slot ? &slot->state : NULL;
}

void session_release_transactions(struct session *session, struct transactions *transactions)
{
	struct session_transactions *slot =
		(void *)((char *)transactions - offsetof(struct session_transactions, state));

	(void)session;
	__atomic_store_n(&slot->image, 0, __ATOMIC_RELEASE);
}

/*
 * A transaction that the program ended in will be rolled back, and what is only reserved is no
 * object: nothing of that is lost.
 */
static void forget_unfinished(struct session *session, struct lines_thread *judge, uint32_t image)
{
	if (image != UINT32_MAX)
		reservations_drop(&session->reservations, &session->lines, judge, image, 0,
				  UINT64_MAX);
	for (uint32_t i = 0; i < session->transactions_used && i < SESSION_TRANSACTIONS; i++) {
		struct session_transactions *slot = &session->transactions[i];

		if (!slot->image)
			continue;
		if (image != UINT32_MAX && slot->image != image + 1)
			continue;
		transactions_drop(&slot->state, &session->lines, judge);
		slot->image = 0;
	}
}

static bool mapped_elsewhere(const struct session *session, const struct session_range *range)
{
	for (uint32_t i = 0; i < session->ranges; i++) {
		const struct session_range *other = &session->range[i];

		if (other != range && other->file && other->start < range->end &&
		    range->start < other->end && !session->image[other->image].ended)
			return true;
	}
	return false;
}

void session_end_image(struct session *session, struct lines_thread *judge, uint32_t image,
		       uint32_t owner)
{
	bool locked = spin_lock(&session->lock, owner);

	session->image[image].ended = true;
	forget_unfinished(session, judge, image);
	for (uint32_t i = 0; i < session->ranges; i++) {
		struct session_range *range = &session->range[i];

		if (!range->file || range->image != image)
			continue;
		if (!mapped_elsewhere(session, range) && !session->file[range->file - 1].unjudged)
			lines_lose(&session->lines, judge, range->start, range->end - range->start);
		range->file = 0;
	}
	if (locked)
		spin_unlock(&session->lock);
}

void session_judge_rest(struct session *session)
{
	for (uint32_t i = 0; i < session->images; i++)
		reservations_drop(&session->reservations, &session->lines, NULL, i, 0, UINT64_MAX);
	forget_unfinished(session, NULL, UINT32_MAX);
	for (uint32_t i = 0; i < session->files; i++)
		if (!session->file[i].unjudged)
			lines_lose(&session->lines, NULL, session->file[i].base,
				   session->file[i].used);
}

/* Zeroes whole pages of the session's memory without touching them. */
static void punch(void *start, uint64_t size)
{
	uint64_t page = 4096, from = (uintptr_t)start & -page;

	madvise((void *)from, (((uintptr_t)start + size + page - 1) & -page) - from, MADV_REMOVE);
}

static void forget_threads(struct session *session)
{
	for (uint32_t i = 0; i < SESSION_THREADS && session->thread[i].lines.id; i++) {
		struct session_thread *thread = &session->thread[i];

		session->loads += thread->loads;
		session->stores += thread->stores;
		session->flushes += thread->flushes;
		session->fences += thread->fences;
		thread->loads = thread->stores = thread->flushes = thread->fences = 0;
		thread->lines = (struct lines_thread){ 0 };
		thread->used = false;
	}
	session->threads_used = session->next_thread = 0;
}

void session_forget_run(struct session *session)
{
	struct lines *lines = &session->lines;

	session_judge_rest(session);
	forget_threads(session);
	for (uint32_t i = 0; i < session->files; i++) {
		uint64_t first = (session->file[i].base - lines->base) / LINES_LINE_SIZE;

		punch(&lines->line[first],
		      session->file[i].used / LINES_LINE_SIZE * sizeof(*lines->line));
	}
	punch(lines->touched, lines->count * LINES_LINE_SIZE >> LINES_BLOCK_SHIFT);
	lines->stores = (struct lines_pool){ .capacity = lines->stores.capacity };
	lines->flushes = (struct lines_pool){ .capacity = lines->flushes.capacity };
	lines->concurrent = 0;
}
