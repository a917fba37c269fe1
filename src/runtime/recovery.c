/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An execution after a crash. PM that was there before is a private mapping of the command's image,
 * which has everything that is certain; lines that are not hold what the policy says, until a load
 * of a commit store chooses otherwise. The first read of every byte is written down.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "model/spin.h"
#include "runtime/execution.h"

#define TOUCHED_BASE 0x250000000000ull /* a table with an entry for each line of the window */
#define IMAGE_BASE 0x240000000000ull   /* the image once more, read-only, at the same offsets */
enum { FILES = 64, PAGE = 4096 };

struct touched {
	uint64_t written, read; /* bytes */
	uint64_t fresh; /* this execution has allocated them: nobody expects anything there */
};

static struct touched *const touched = (void *)TOUCHED_BASE;
static struct view view;
static uint32_t lock;
static uint32_t skips;
static bool interesting;
static uint32_t verifications;
static __thread const struct frame *verifier __attribute__((tls_model("initial-exec")));
/* How deep, and the number of the outermost. */
static __thread uint32_t verifying __attribute__((tls_model("initial-exec")));
static __thread uint32_t verification __attribute__((tls_model("initial-exec")));
static struct place {
	uint64_t start, end;
	uint64_t content; /* where the file ends: behind it there is nothing to look at */
	bool own;
	uint32_t count; /* of mappings that the program has */
	int protection;
} place[FILES];
static uint32_t places;

void recovery_start(void)
{
	struct execution *execution = runtime_execution;
	size_t states = (execution->crash.lines + 1ul) * sizeof(struct view_state);
	uint64_t table = (SESSION_WINDOW_SIZE / HISTORY_LINE_SIZE) * sizeof(struct touched);
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

	if (!execution->lazy)
		return;
	syscall(SYS_mmap, TOUCHED_BASE, table, PROT_READ | PROT_WRITE, flags | MAP_FIXED, -1, 0L);
	view = (struct view){
		.history = &runtime_session->executions.history,
		.crash = &execution->crash,
		.state = (void *)syscall(SYS_mmap, NULL, states, PROT_READ | PROT_WRITE, flags, -1,
					 0L),
		.latest = execution->latest,
		.strict = execution->strict,
		.exhaustive = execution->exhaustive,
		.random = execution->random,
		.script = execution->script,
		.script_length = execution->script_length,
	};
	recovery_asked(READ_STAGE, execution->stage);
}

void recovery_skip(bool begin)
{
	skips += begin ? 1 : -(skips > 0);
}

/* A verifier that was left by a jump or an exception has a frame below the stack as it is now. */
static void drop_verification(const struct frame *frame)
{
	if (verifying && verifier && frame > verifier)
		verifying = verification = 0;
}

void recovery_verify(bool begin, const struct frame *frame)
{
	if (frame)
		drop_verification(frame);
	if (begin && !verifying++) {
		verifier = frame;
		verification = ++verifications;
		runtime_session->executions.verified = 1;
	} else if (!begin && verifying && !--verifying) {
		verification = 0;
	}
}

void recovery_interest(bool begin)
{
	interesting = begin;
}

static bool is_judged(void)
{
	return !skips && !verification &&
	       (interesting || !runtime_session->executions.interest_after);
}

static struct place *any_place_at(uint64_t address)
{
	for (uint32_t i = 0; i < places; i++)
		if (address >= place[i].start && address < place[i].end)
			return &place[i];
	return NULL;
}

/* What is the execution's own is nobody's to judge. */
static struct place *place_at(uint64_t address)
{
	struct place *at = any_place_at(address);

	return at && !at->own ? at : NULL;
}

static struct touched *touched_line(uint64_t line)
{
	return &touched[(line - SESSION_WINDOW) / HISTORY_LINE_SIZE];
}

static const unsigned char *image_of(uint64_t line)
{
	return (const unsigned char *)(line - SESSION_WINDOW + IMAGE_BASE);
}

static void content_of(const struct view_line *line, uint32_t version,
		       unsigned char content[HISTORY_LINE_SIZE])
{
	view_content(&view, line, version, image_of(line->address), content);
}

/* Bytes that this execution has not changed get the content of another version. */
static void change_version(const struct view_read *read, uint64_t line)
{
	unsigned char before[HISTORY_LINE_SIZE], after[HISTORY_LINE_SIZE];
	unsigned char *memory = (unsigned char *)line;
	uint64_t own = touched_line(line)->written;

	content_of(read->line, read->before, before);
	content_of(read->line, read->version, after);
	for (unsigned i = 0; i < HISTORY_LINE_SIZE; i++)
		if (!(own >> i & 1) && memory[i] == before[i] && memory[i] != after[i])
			memory[i] = after[i];
}

static void record(const struct read_record *record)
{
	struct execution *execution = runtime_execution;

	if (execution->reads >= EXECUTION_READS)
		execution->reads_lost++;
	else
		execution->read[execution->reads++] = *record;
}

/*
 * Bytes that are not what this execution was given were changed by code without hooks: a prebuilt
 * library that repairs its data.
 */
static uint64_t changed_unseen(uint64_t line, const struct view_line *uncertain)
{
	const struct view_state *state = &view.state[uncertain - view.crash->line];
	const unsigned char *memory = (const unsigned char *)line;
	unsigned char content[HISTORY_LINE_SIZE];
	struct history_versions versions;
	uint64_t changed = 0;

	view_versions(view.history, view.crash, uncertain, &versions);
	content_of(uncertain, state->started ? state->chosen : view_default(&versions, view.latest),
		   content);
	for (unsigned i = 0; i < HISTORY_LINE_SIZE; i++)
		if (memory[i] != content[i])
			changed |= 1ull << i;
	return changed;
}

static void load_line(uint64_t line, uint64_t bytes, uint32_t flags, const struct frame *frame)
{
	struct touched *t = touched_line(line);
	const struct view_line *uncertain;
	struct view_read read;

	bytes &= ~(t->written | t->read);
	if (!bytes)
		return;
	uncertain = runtime_execution->inputs & INPUT_FOREIGN ? view_find(view.crash, line) : NULL;
	if (uncertain)
		t->written |= changed_unseen(line, uncertain);
	bytes &= ~t->written;
	if (!bytes)
		return;
	t->read |= bytes;
	view.commit = runtime_session->executions.commit;
	view.commits = runtime_session->executions.commits;
	view.checksum = runtime_session->executions.checksum;
	view.checksums = runtime_session->executions.checksums;
	drop_verification(frame);
	view.verification = verification;
	view_read(&view, line, bytes, image_of(line), &read);
	if (read.line && read.chosen)
		change_version(&read, line);
	record(&(struct read_record){
		.line = line,
		.bytes = bytes,
		.value = execution_hash((const unsigned char *)line, bytes),
		.stack = stack_capture(frame),
		.flags = flags | (is_judged() ? 0 : READ_UNJUDGED) |
			 verification << READ_VERIFICATION_SHIFT,
	});
}

void recovery_load(const void *p, uint64_t size, uint32_t flags, const struct frame *frame)
{
	uint64_t start = (uintptr_t)p, end = start + size;
	const struct place *at = runtime_execution->lazy ? place_at(start) : NULL;
	bool locked;

	if (!at || !thread_enter())
		return;
	locked = spin_lock(&lock, thread_owner());
	for (uint64_t line = start & -64ull; line < end && line < at->content; line += 64) {
		uint64_t bytes = history_bytes(line, start, end), fresh = touched_line(line)->fresh;

		load_line(line, bytes & ~fresh, flags, frame);
		load_line(line, bytes & fresh, flags | READ_UNJUDGED, frame);
	}
	if (locked)
		spin_unlock(&lock);
	thread_leave();
}

void recovery_stored(const void *p, uint64_t size, uint32_t flags, const struct frame *frame)
{
	uint64_t start = (uintptr_t)p, end = start + size;
	const struct place *at = runtime_execution->lazy ? place_at(start) : NULL;

	if (runtime_relogs && at) {
		log_recovery(HISTORY_STORE, flags, p, size, frame);
		if (flags & PERDURE_NONTEMPORAL)
			__perdure_inline.pending = 1;
	}

	for (uint64_t line = start & -64ull; at && line < end && line < at->content; line += 64)
		touched_line(line)->written |= history_bytes(line, start, end);
}

void recovery_allocated(const void *p, uint64_t size)
{
	uint64_t start = (uintptr_t)p, end = start + size;
	const struct place *at = runtime_execution->lazy ? place_at(start) : NULL;

	for (uint64_t line = start & -64ull; at && line < end && line < at->content; line += 64)
		touched_line(line)->fresh |= history_bytes(line, start, end);
}

void recovery_asked(uint64_t what, uint64_t state)
{
	enum { KNOWN = 256 };
	static uint64_t known[KNOWN];
	static uint32_t count;

	for (uint32_t i = 0; i < count; i++)
		if (known[i] == what)
			return;
	if (count < KNOWN)
		known[count++] = what;
	record(&(struct read_record){ .line = what, .value = state, .flags = READ_OUTSIDE });
}

/* ---- mapping ---- */

/* Lines that are not certain hold what the policy says. */
static void fill_in(uint64_t start, uint64_t end)
{
	const struct view_crash *crash = view.crash;
	struct history_versions versions;

	for (uint32_t i = 0; i < crash->lines; i++) {
		const struct view_line *line = &crash->line[i];
		unsigned char content[HISTORY_LINE_SIZE];

		if (line->address < start || line->address >= end)
			continue;
		/* The oldest version is what the image has, but for stores that jumped the queue.
		 */
		if (!view.latest && !line->contents && !view.history->line[line->line].special)
			continue;
		view_versions(view.history, crash, line, &versions);
		content_of(line, view_default(&versions, view.latest), content);
		plain_copy((void *)line->address, content, sizeof(content));
	}
}

/* Through a descriptor of our own: a mapping keeps the locks of the one it was made with. */
static struct place *add_place(const struct session_file *file, uint64_t size, uint64_t wanted)
{
	uint64_t start = file->base, offset = start - SESSION_WINDOW;
	int flags = MAP_NORESERVE | MAP_FIXED, fd = world_open_backing(file->world - 1);
	bool mapped;

	if (wanted < size)
		wanted = size;
	mapped = fd >= 0 && places < FILES && wanted &&
		 syscall(SYS_mmap, start, wanted, PROT_READ | PROT_WRITE, flags | MAP_PRIVATE, fd,
			 0L) >= 0 &&
		 syscall(SYS_mmap, IMAGE_BASE + offset, wanted, PROT_READ, flags | MAP_SHARED, fd,
			 0L) >= 0;
	syscall(SYS_close, fd);
	if (!mapped)
		return NULL;
	fill_in(start, start + size);
	place[places] =
		(struct place){ .start = start, .end = start + wanted, .content = start + size };
	return &place[places++];
}

/* Files that this execution has made are mapped as a whole as well: one address for one byte. */
static struct place *map_own(const struct session_file *file, struct place *at, uint64_t size)
{
	int flags = MAP_NORESERVE | MAP_FIXED | MAP_SHARED;
	int fd = world_open_backing(file->world - 1);
	long got = -1;

	if (fd >= 0 && (at || places < FILES))
		got = syscall(SYS_mmap, file->base, size, PROT_READ | PROT_WRITE, flags, fd, 0L);
	if (got >= 0)
		mirror_follow(file->base, size, fd);
	syscall(SYS_close, fd);
	if (got < 0)
		return NULL;
	if (!at)
		at = &place[places++];
	*at = (struct place){ file->base, file->base + size, file->base + size,
			      true,       at->count,         at->protection };
	return at;
}

static struct session_file *place_of_file(uint32_t file)
{
	struct session *session = runtime_session;

	for (uint32_t i = 0; i < session->files; i++)
		if (session->file[i].world == file + 1)
			return &session->file[i];
	return NULL;
}

static void protect(const struct place *at)
{
	syscall(SYS_mprotect, at->start, at->end - at->start,
		at->count ? at->protection : PROT_NONE);
}

static bool is_empty(const uint64_t *page)
{
	for (unsigned i = 0; i < PAGE / sizeof(*page); i++)
		if (page[i])
			return false;
	return true;
}

/* Empty pages stay holes. */
static bool write_pages(int fd, uint64_t start, uint64_t size)
{
	for (uint64_t at = 0; at < size; at += PAGE)
		if (!is_empty((const uint64_t *)(start + at)) &&
		    syscall(SYS_pwrite64, fd, start + at, PAGE, at) != PAGE)
			return false;
	return true;
}

void *recovery_map(struct session_file *file, int fd, uint64_t length, int protection,
		   uint64_t offset)
{
	struct place *at = any_place_at(file->base);
	bool own = !world_is_shared(file->world);
	struct stat status;
	uint64_t size, content;

	status.st_size = length; /* the heap has no descriptor */
	if (fd >= 0 && syscall(SYS_fstat, fd, &status) < 0)
		return MAP_FAILED;
	content = size = (status.st_size + PAGE - 1) & -(uint64_t)PAGE;
	if (size < offset + length)
		size = offset + length; /* as far as the file goes; behind that is SIGBUS */
	if (own && (!at || size > at->end - at->start))
		at = map_own(file, at, size);
	else if (!at || size > at->end - at->start)
		at = at ? NULL : add_place(file, content, size);
	if (!at) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	at->count++;
	at->protection |= protection;
	protect(at);
	if (!own && runtime_execution->inputs & INPUT_PROGRAMS)
		session_limit(
			runtime_session, thread_owner(),
			"a recovery starts other programs that map PM: these find it as the crash "
			"left it, whatever the recovery has done before");
	return (void *)(file->base + offset);
}

/* Pages that two addresses share cannot be private: they become those of a file of their own. */
void recovery_mirror(uint64_t address)
{
	struct place *at = any_place_at(address);
	uint64_t size = at ? at->end - at->start : 0, content = at ? at->content - at->start : 0;
	int fd;

	if (!at)
		return;
	fd = at->own ? world_open_backing(session_file_at(runtime_session, at->start)->world - 1)
		     : (int)syscall(SYS_memfd_create, "perdure-mirror", 1);
	syscall(SYS_mprotect, at->start, size, PROT_READ | PROT_WRITE);
	if (!at->own &&
	    (syscall(SYS_ftruncate, fd, content) < 0 || !write_pages(fd, at->start, content) ||
	     syscall(SYS_mmap, at->start, size, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, 0L) < 0))
		session_limit(runtime_session, thread_owner(),
			      "no memory for PM that is mapped with MAP_FIXED");
	mirror_follow(at->start, size, fd);
	syscall(SYS_close, fd);
	protect(at);
}

/* All of a file is mapped anyway. */
void *recovery_remap(void *address, uint64_t size)
{
	const struct place *at = any_place_at((uintptr_t)address);

	if (at && (uintptr_t)address + size <= at->end)
		return address;
	errno = ENOMEM;
	return MAP_FAILED;
}

bool recovery_unmap(uint64_t start)
{
	struct place *at = any_place_at(start);

	if (!at)
		return false;
	if (at->count && --at->count == 0) {
		at->protection = PROT_NONE;
		protect(at);
	}
	return true;
}

ssize_t recovery_read(uint32_t file, int fd, void *bytes, size_t size, off_t offset,
		      const struct frame *frame)
{
	struct session_file *slot = place_of_file(file);
	struct place *at = slot ? place_at(slot->base) : NULL;
	off_t end = lseek(fd, 0, SEEK_END);

	if (slot && !at)
		at = add_place(slot, (end + PAGE - 1) & -(uint64_t)PAGE, 0);
	if (!at || offset < 0)
		return -1;
	if (offset >= end)
		return 0;
	if ((off_t)size > end - offset)
		size = end - offset;
	if (!at->count)
		syscall(SYS_mprotect, at->start, at->end - at->start, PROT_READ | PROT_WRITE);
	recovery_load((void *)(at->start + offset), size, READ_BULK, frame);
	plain_copy(bytes, (void *)(at->start + offset), size);
	if (!at->count)
		protect(at);
	return size;
}

void recovery_leave_image(uint32_t file, int own)
{
	struct session_file *slot = place_of_file(file);
	struct place *at = slot ? place_at(slot->base) : NULL;
	off_t end = lseek(own, 0, SEEK_END);
	uint64_t size;

	if (!slot || !end)
		return;
	size = (end + PAGE - 1) & -(uint64_t)PAGE;
	if (!at)
		at = add_place(slot, size, 0);
	if (!at)
		return;
	syscall(SYS_mprotect, at->start, size, PROT_READ | PROT_WRITE);
	syscall(SYS_pwrite64, own, at->start, end, 0L);
	map_own(slot, at, size);
	protect(at);
}
