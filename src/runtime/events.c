/* SPDX-License-Identifier: BSD-3-Clause */
/* Events on ranges of any size, for library functions and system calls. */
#include <string.h>

#include "fibers/fibers.h"
#include "races/races.h"
#include "runtime/execution.h"
#include "runtime/hooks.h"
#include "symbolic/symbolic.h"

/*
 * Calls of a libc function on ordinary memory leave at once, and so do those of a process without
 * any instrumented code (a shell with --pm-heap).
 */
static bool touches_window(const void *p, size_t size)
{
	return size && (in_window(p) || in_window((const char *)p + size - 1)) && runtime_involved;
}

/*
 * A library function called by a trusted library. Under a sanitizer its interceptor, which is part
 * of the program, is in between.
 */
static bool is_by_trusted_library(const struct frame *frame)
{
	if (modules_trusted(frame->return_address))
		return true;
	return runtime_has_sanitizer && (uintptr_t)frame->caller > (uintptr_t)frame &&
	       (uintptr_t)frame->caller < runtime_thread.stack_high &&
	       modules_trusted(frame->caller->return_address);
}

void event_load(const void *p, size_t size, const struct frame *frame)
{
	if (!runtime_wants_loads || !touches_window(p, size))
		return;
	p = place_in_window(p);
	if (runtime_recovers) {
		recovery_load(p, size, READ_BULK, frame);
		return;
	}
	if (is_by_trusted_library(frame))
		return;
	if (runtime_races) {
		races_told(RACES_LOADS, p, size, 0, frame);
		return;
	}
	while (size) {
		size_t part = size < PERDURE_SIZE_MASK ? size : PERDURE_SIZE_MASK;

		hook_load(p, PERDURE_BULK | part, frame);
		p = (const char *)p + part;
		size -= part;
	}
}

size_t plain_length(const char *text)
{
	return REAL(strlen)(text);
}

/* Byte by byte: each one is read because of what the one before it was. */
void event_load_text(const char *text, size_t n, const struct frame *frame)
{
	if (!runtime_recovers)
		event_load(text, n, frame);
	else if (runtime_involved && in_window(text))
		for (size_t i = 0; i < n; i++)
			recovery_load(place_in_window(text + i), 1, READ_BULK, frame);
}

/* What a byte is may only be known once it has been read. */
size_t event_load_string(const char *text, size_t most, const struct frame *frame)
{
	size_t n = 0;

	if (!runtime_recovers || !in_window(text)) {
		n = REAL(strnlen)(text, most);
		event_load(text, n + (n < most), frame);
		return n;
	}
	for (; n < most; n++) {
		event_load_text(text + n, 1, frame);
		if (!text[n])
			break;
	}
	return n;
}

static size_t line_rest(const void *p, size_t n)
{
	size_t rest = PERDURE_LINE_SIZE - (uintptr_t)p % PERDURE_LINE_SIZE;

	return rest < n ? rest : n;
}

/* What to write into each line while it is locked. */
struct content {
	const char *place; /* the target's type, or null */
	const char *from;  /* null: fill with byte */
	int byte;
	bool present; /* already written: only the event is missing */
};

static void write_part(char *to, const struct content *content, size_t offset, size_t n)
{
	const char *from = content->from + offset;
	size_t count = n;
	char *target = to;

	if (content->present)
		return;
	if (content->from && n == PERDURE_LINE_SIZE)
		__builtin_memcpy(to, from, PERDURE_LINE_SIZE);
	else if (content->from)
		__asm__ volatile("rep movsb" : "+D"(target), "+S"(from), "+c"(count)::"memory");
	else
		__asm__ volatile("rep stosb"
				 : "+D"(target), "+c"(count)
				 : "a"(content->byte)
				 : "memory");
}

/* A prebuilt library whose copies can be seen, but not its other stores, nor its flushes. */
static void note_foreign(const struct frame *frame)
{
	char text[SESSION_PATH];

	if (__builtin_expect(modules_instrumented((void *)frame->return_address), 1))
		return;
	if (modules_describe_foreign(frame->return_address, text, sizeof(text)))
		session_limit(runtime_session, thread_owner(), text);
}

static void write_lines(char *to, size_t n, const struct content *content, uint32_t flags,
			const struct frame *frame)
{
	bool followed = runtime_involved && is_followed(to) && !runtime_recovers &&
			!is_by_trusted_library(frame);
	bool nontemporal = flags & PERDURE_NONTEMPORAL;
	struct session_thread *thread;
	uint32_t stack;

	to = place_in_window(to);
	if (runtime_explores) {
		reached_place(frame->return_address);
		reached_memory(to, frame->return_address);
	}
	if (runtime_races) {
		races_copying(content->from);
		races_told(RACES_STORES, to, n, flags, frame);
		write_part(to, content, 0, n);
		return;
	}
	if (fibers_preempt)
		fiber_point(POINT_ACCESS);
	thread = followed ? thread_enter() : NULL;
	if (!thread) {
		write_part(to, content, 0, n);
		if (runtime_recovers)
			recovery_stored(to, n, flags, frame);
		return;
	}
	stack = stack_capture(frame);
	note_foreign(frame);
	thread->stores++;
	thread->lines.event++;
	for (size_t done = 0, part; done < n; done += part) {
		uint64_t address = (uintptr_t)to + done;
		bool locked = lines_begin(&runtime_session->lines, &thread->lines, address);

		part = line_rest(to + done, n - done);
		write_part(to + done, content, done, part);
		if (locked)
			lines_end_store(&runtime_session->lines, &thread->lines, address,
					lines_bytes(address, part), stack, nontemporal);
	}
	__perdure_inline.stored = 1;
	if (nontemporal)
		__perdure_inline.pending = 1;
	if (runtime_thread.judges && !runtime_thread.own_store)
		judge_store(thread, to, n, content->place, stack, frame);
	if (runtime_session->listening)
		tell_event(thread, PERDURE_EVENT_STORE, flags, to, n, stack, content->place);
	thread_leave();
}

void event_write(void *p, uint64_t size, uint32_t flags, const struct frame *frame)
{
	write_lines(p, size, &(struct content){ .present = true }, flags, frame);
}

void event_stored(void *p, size_t size, const struct frame *frame)
{
	if (symbolic_on)
		memory_clear(p, size);
	event_received(p, size, frame);
}

void event_received(void *p, size_t size, const struct frame *frame)
{
	__perdure_inline.stored = 1;
	if (touches_window(p, size))
		event_write(p, size, PERDURE_BULK, frame);
}

void event_streamed(void *p, size_t size, const struct frame *frame)
{
	__perdure_inline.stored = 1;
	if (touches_window(p, size))
		event_write(p, size, PERDURE_BULK | PERDURE_NONTEMPORAL, frame);
}

void event_copy(void *to, const void *from, size_t n, const char *place, const struct frame *frame)
{
	if (n)
		write_lines(to, n, &(struct content){ .from = from, .place = place }, PERDURE_BULK,
			    frame);
}

/* A target above its source is copied from the end, in pieces, through the stack. */
void event_move(void *to, const void *from, size_t n, const char *place, const struct frame *frame)
{
	enum { PIECE = 512 };
	char piece[PIECE];

	to = place_in_window(to);
	from = place_in_window(from);
	if ((uintptr_t)to - (uintptr_t)from >= n) {
		event_copy(to, from, n, place, frame);
		return;
	}
	while (n) {
		size_t part = n < PIECE ? n : PIECE;

		n -= part;
		write_part(piece, &(struct content){ .from = (const char *)from + n }, 0, part);
		event_copy((char *)to + n, piece, part, place, frame);
	}
}

void event_fill(void *to, int byte, size_t n, const char *place, const struct frame *frame)
{
	if (n)
		write_lines(to, n, &(struct content){ .byte = byte, .place = place }, PERDURE_BULK,
			    frame);
}

void event_volatile(void *p, size_t size)
{
	struct session_thread *thread =
		touches_window(p, size) && !runtime_recovers ? thread_enter() : NULL;

	if (!thread)
		return;
	p = place_in_window(p);
	lines_exclude(&runtime_session->lines, &thread->lines, (uintptr_t)p, size, true);
	if (runtime_races)
		regions_exclude(p, size);
	tell(thread, PERDURE_EVENT_VOLATILE, 0, p, size, 0);
	thread_leave();
}

void event_flush(const void *p, size_t size, enum perdure_flush kind, const struct frame *frame)
{
	uintptr_t line;

	if (!touches_window(p, size) || is_by_trusted_library(frame))
		return;
	p = place_in_window(p);
	line = (uintptr_t)p & ~(uintptr_t)(PERDURE_LINE_SIZE - 1);
	for (; line < (uintptr_t)p + size; line += PERDURE_LINE_SIZE)
		hook_flush((const void *)line, kind, frame);
}

void event_fence(enum perdure_fence kind, const struct frame *frame)
{
	if (!runtime_session)
		return;
	if (kind == PERDURE_RMW_FENCE && !__perdure_inline.pending &&
	    (!runtime_wants_loads || runtime_recovers) && !runtime_relogs) {
		__perdure_inline.stored = 1;
		return;
	}
	hook_fence(kind, frame);
}

void event_persist(const void *p, size_t size, const struct frame *frame)
{
	struct session_thread *thread = runtime_recovers ? NULL : thread_enter();
	uint32_t stack;

	p = place_in_window(p);
	if (runtime_explores)
		reached_memory(p, frame->return_address);
	if (runtime_races) {
		races_persist(p, size);
		return;
	}
	if (runtime_relogs)
		log_recovery(HISTORY_PERSIST, 0, p, size, frame);
	if (!thread)
		return;
	stack = stack_capture(frame);
	lines_persist(&runtime_session->lines, &thread->lines, (uintptr_t)p, size, stack);
	tell(thread, PERDURE_EVENT_PERSIST, 0, p, size, stack);
	thread_leave();
}

void event_lock(const void *p, bool taken, const struct frame *frame)
{
	struct session_thread *thread;

	if (runtime_races && taken)
		races_acquire(p);
	else if (runtime_races)
		races_release(p, true, frame->return_address);
	event_fence(PERDURE_RMW_FENCE, frame);
	if (causality_on && taken)
		causality_acquire(p);
	else if (causality_on)
		causality_release(p);
	if (!runtime_session || runtime_races || !runtime_session->stream.on ||
	    !(thread = thread_enter()))
		return;
	tell(thread, taken ? PERDURE_EVENT_LOCK : PERDURE_EVENT_UNLOCK, 0, p, 0,
	     stack_capture(frame));
	thread_leave();
}
