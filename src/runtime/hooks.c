/* SPDX-License-Identifier: BSD-3-Clause */
/* The hooks of perdure/event.h, behind the register-saving entry points of hooks.S. */
#include "runtime/hooks.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "fibers/buffer.h"
#include "races/races.h"
#include "runtime/execution.h"
#include "runtime/library.h"
#include "symbolic/symbolic.h"

HIDDEN uint8_t runtime_wants_loads;

static bool process_is_gone(int32_t pid)
{
	return syscall(SYS_kill, pid, 0) < 0;
}

static void copy_bytes(char *to, const char *from, size_t n)
{
	while (n--)
		*to++ = *from++;
}

void tell_now(struct perdure_event *event)
{
	stream_write(&runtime_session->stream, event, process_is_gone);
}

void tell_event(const struct session_thread *thread, enum perdure_event_kind kind, uint32_t detail,
		const void *p, uint64_t size, uint32_t stack, const char *place)
{
	struct perdure_event event = {
		.kind = kind,
		.detail = detail,
		.address = (uintptr_t)p,
		.size = size,
		.thread = thread->lines.id,
		.stack = stack,
		.place = place ? places_add(place) : 0,
	};

	if (kind == PERDURE_EVENT_STORE && size <= sizeof(event.value))
		copy_bytes((char *)&event.value, p, size);
	if (runtime_logs)
		log_told(&event);
	if (runtime_session->stream.on && runtime_explores)
		telling_note(&event); /* paths speak one after the other */
	else if (runtime_session->stream.on)
		tell_now(&event);
}

/* Instrumented code never runs inside a hook, except in a signal handler that interrupted one. */
static void note_skipped(void)
{
	if (runtime_session)
		__atomic_fetch_add(&runtime_session->skipped, 1, __ATOMIC_RELAXED);
}

/* ---- loads ---- */

/* Others may run before an access; `descriptor` with its chain. */
static void make_way(uint64_t descriptor)
{
	if (__builtin_expect(!fibers_preempt, 1))
		return;
	if (buffers_on)
		buffer_continue(descriptor);
	fiber_point(POINT_ACCESS);
}

void hook_load(const void *p, uint64_t descriptor, const struct frame *frame)
{
	struct session_thread *thread;

	if (runtime_races) {
		if (!(descriptor & PERDURE_RMW))
			races_told(RACES_LOADS, p, descriptor & PERDURE_SIZE_MASK, 0, frame);
		return;
	}
	if (!(descriptor & PERDURE_RMW)) /* whose store comes next */
		make_way(descriptor);
	if (fibers_on && !fibers_preempt)
		fiber_loaded();
	if (runtime_recovers) {
		recovery_load(p, descriptor & PERDURE_SIZE_MASK,
			      descriptor & PERDURE_BULK ? READ_BULK : 0, frame);
		return;
	}
	thread = is_trusted(frame) ? NULL : thread_enter_waiting();
	if (!thread)
		return;
	thread->loads++;
	if (runtime_session->stream.on)
		tell(thread, PERDURE_EVENT_LOAD, (uint32_t)descriptor & ~PERDURE_SIZE_MASK, p,
		     descriptor & PERDURE_SIZE_MASK, stack_capture(frame));
	thread_leave();
}

/* ---- stores ---- */

/* Both are going to be touched, and neither may be in the cache. */
static void prefetch(const void *p)
{
	if (__builtin_expect(runtime_session != NULL, 1))
		lines_prefetch(&runtime_session->lines, (uintptr_t)p);
	__builtin_prefetch(p, 1);
}

static void commit_store(struct session_thread *thread, void *p, uint64_t value,
			 uint32_t descriptor, const char *place, uint32_t stack)
{
	unsigned size = descriptor & PERDURE_SIZE_MASK;
	uint64_t address = (uintptr_t)p;

	thread->stores++;
	thread->lines.event++;
	if (lines_begin(&runtime_session->lines, &thread->lines, address)) {
		store_value(p, value, size);
		lines_end_store(&runtime_session->lines, &thread->lines, address,
				lines_bytes(address, size), stack,
				descriptor & PERDURE_NONTEMPORAL);
	} else {
		store_value(p, value, size);
	}
	if (runtime_session->listening)
		tell_event(thread, PERDURE_EVENT_STORE, descriptor & ~PERDURE_SIZE_MASK, p, size,
			   stack, place);
}

void hook_commit_store(void *p, uint64_t value, uint32_t descriptor, const char *place,
		       uint32_t stack)
{
	struct session_thread *thread = thread_enter();

	if (thread) {
		commit_store(thread, p, value, descriptor, place, stack);
		thread_leave();
	} else {
		store_value(p, value, descriptor & PERDURE_SIZE_MASK);
	}
}

void hook_store(void *p, uint64_t value, uint64_t descriptor, const char *place,
		const struct frame *frame)
{
	unsigned size = descriptor & PERDURE_SIZE_MASK;
	struct session_thread *thread;
	uint32_t stack;
	bool followed;

	if (runtime_explores) {
		reached_place(frame->return_address);
		reached_memory(p, frame->return_address);
	}
	if (runtime_races) {
		races_storing(value);
		races_told(RACES_STORES, p, size, descriptor, frame);
		store_value(p, value, size);
		return;
	}
	make_way(descriptor);
	if (runtime_recovers) {
		store_value(p, value, size);
		recovery_stored(p, size, descriptor, frame);
		return;
	}
	prefetch(p);
	/* A bad address faults here, outside any lock; what is mapped is not worth a look. */
	if (!window_has(p, size))
		*(volatile char *)p;
	if ((uintptr_t)p % PERDURE_LINE_SIZE + size > PERDURE_LINE_SIZE) {
		hook_write_begin(p, size, descriptor, frame);
		store_value(p, value, size);
		hook_write_end(p, size, descriptor, 1, place, frame);
		return;
	}
	followed = is_followed(p) && !is_trusted(frame);
	thread = followed ? thread_enter_waiting() : NULL;
	if (!thread) {
		if (followed)
			note_skipped();
		store_value(p, value, size);
		return;
	}
	stack = stack_capture(frame);
	if (buffers_on)
		buffer_store(p, value, descriptor, place, stack);
	else
		commit_store(thread, p, value, descriptor, place, stack);
	__perdure_inline.stored = 1;
	if (descriptor & PERDURE_NONTEMPORAL)
		__perdure_inline.pending = 1;
	if (runtime_thread.judges)
		judge_store(thread, p, size, place, stack, frame);
	thread_leave();
}

/*
 * A write whose instruction is the program's own: its lines stay locked from begin to end, and the
 * thread stays busy, so that a signal handler in between waits for no other line. A second write
 * of the same instruction (assembly with two outputs) only tries to lock.
 */
enum { OPEN_WRITES = 4, OPEN_LINES = 64 };
struct open_write {
	struct open_range {
		uint64_t address, size;
		uint64_t locked; /* one bit a line */
	} range;
	char before[64]; /* PERDURE_IF_CHANGED: the bytes before */
};
static __thread struct {
	unsigned count;
	struct open_write write[OPEN_WRITES];
} open_writes __attribute__((tls_model("initial-exec")));

static bool same_bytes(const char *a, const char *b, size_t n)
{
	while (n && *a == *b)
		n--, a++, b++;
	return n == 0;
}

static uint64_t line_of(uint64_t address)
{
	return address & ~(uint64_t)(PERDURE_LINE_SIZE - 1);
}

static uint64_t lock_lines(struct session_thread *thread, uint64_t address, uint64_t size,
			   bool only_try)
{
	uint64_t locked = 0, line = line_of(address);

	for (unsigned i = 0; i < OPEN_LINES && line < address + size; i++) {
		if (only_try ? lines_try(&runtime_session->lines, &thread->lines, line)
			     : lines_begin(&runtime_session->lines, &thread->lines, line))
			locked |= 1ull << i;
		line += PERDURE_LINE_SIZE;
	}
	return locked;
}

void hook_write_begin(void *p, uint64_t size, uint32_t descriptor, const struct frame *frame)
{
	struct session_thread *thread;
	struct open_write *write;

	if (runtime_explores) {
		reached_place(frame->return_address);
		reached_memory(p, frame->return_address);
	}
	if (runtime_races) {
		if (descriptor & PERDURE_RMW)
			races_lock_begin(p, size, frame->return_address, NULL);
		else
			races_told(RACES_STORES, p, size, descriptor, frame);
		return;
	}
	if (!open_writes.count && !(descriptor & PERDURE_RMW))
		make_way(0);
	if (runtime_recovers) {
		if (descriptor & PERDURE_RMW)
			event_fence(PERDURE_RMW_FENCE, frame);
		if (descriptor & (PERDURE_RMW | PERDURE_IF_CHANGED) &&
		    !(descriptor & PERDURE_STORES) && in_window(p))
			recovery_load(p, size, 0, frame);
		return;
	}
	if (in_window(p) && !(descriptor & PERDURE_NONTEMPORAL))
		prefetch(p);
	if (descriptor & PERDURE_RMW)
		event_fence(PERDURE_RMW_FENCE, frame);
	if (!in_window(p) || !is_followed(p) || is_trusted(frame) || !size ||
	    open_writes.count == OPEN_WRITES)
		return;
	/* As in hook_store; and a streaming store does not want the line in the cache. */
	if (!window_has(p, size)) {
		*(volatile char *)p;
		((volatile char *)p)[size - 1];
	}
	thread = open_writes.count ? runtime_thread.shared : thread_enter();
	if (!thread) {
		note_skipped();
		return;
	}
	write = &open_writes.write[open_writes.count];
	write->range = (struct open_range){ .address = (uintptr_t)p, .size = size };
	write->range.locked = lock_lines(thread, (uintptr_t)p, size, open_writes.count > 0);
	open_writes.count++;
	if (descriptor & PERDURE_IF_CHANGED && size <= sizeof(write->before))
		copy_bytes(write->before, p, size);
}

/* The part of [address, address + size) that lies in this line, as bits. */
static uint64_t line_part(uint64_t line, uint64_t address, uint64_t size)
{
	uint64_t start = address > line ? address : line;
	uint64_t end = address + size;

	if (end > line + PERDURE_LINE_SIZE)
		end = line + PERDURE_LINE_SIZE;
	return lines_bytes(start, end - start);
}

static void end_lines(struct session_thread *thread, const struct open_range *range,
		      uint32_t descriptor, uint32_t stack, bool done)
{
	uint64_t line = line_of(range->address);

	for (unsigned i = 0; i < OPEN_LINES && line < range->address + range->size; i++) {
		if (!(range->locked & 1ull << i))
			;
		else if (done)
			lines_end_store(&runtime_session->lines, &thread->lines, line,
					line_part(line, range->address, range->size), stack,
					descriptor & PERDURE_NONTEMPORAL);
		else
			lines_cancel(&runtime_session->lines, line);
		line += PERDURE_LINE_SIZE;
	}
}

void hook_write_end(void *p, uint64_t size, uint32_t descriptor, uint32_t done, const char *place,
		    const struct frame *frame)
{
	struct session_thread *thread;
	const struct open_write *write;
	struct open_range range;
	uint32_t stack;

	if (runtime_races && descriptor & PERDURE_RMW)
		races_lock_end(
			(done ? RACES_STORES : 0) | (descriptor & PERDURE_STORES ? 0 : RACES_LOADS),
			p, size, frame->return_address, learn_known(frame->return_address), frame);
	if (runtime_recovers && done && in_window(p))
		recovery_stored(p, size, descriptor, frame);
	if (!in_window(p) || !open_writes.count)
		return;
	write = &open_writes.write[open_writes.count - 1];
	range = write->range; /* a signal's handler may come and write there */
	if (range.address != (uintptr_t)p || range.size != size)
		return;
	thread = runtime_thread.shared;
	if (descriptor & PERDURE_IF_CHANGED && size <= sizeof(write->before))
		done = !same_bytes(write->before, p, size);
	open_writes.count--;
	stack = stack_capture(frame);
	thread->lines.event++;
	end_lines(thread, &range, descriptor, stack, done);
	if (done) {
		thread->stores++;
		__perdure_inline.stored = 1;
		if (descriptor & PERDURE_NONTEMPORAL)
			__perdure_inline.pending = 1;
	}
	if (done && runtime_thread.judges)
		judge_store(thread, p, size, place, stack, frame);
	if (runtime_session->listening)
		tell_event(thread, done ? PERDURE_EVENT_STORE : PERDURE_EVENT_FAILED_CAS,
			   descriptor & ~PERDURE_SIZE_MASK, p, size, stack, place);
	if (!open_writes.count)
		thread_leave();
}

void hook_abandon_writes(void)
{
	while (open_writes.count) {
		const struct open_write *write = &open_writes.write[--open_writes.count];

		end_lines(runtime_thread.shared, &write->range, 0, 0, false);
	}
}

static void lanes_part(char *p, uint64_t size, uint32_t flags, const struct frame *frame)
{
	if (!in_window(p) || !size)
		return;
	if (!(flags & PERDURE_READ))
		event_write(p, size, flags, frame);
	else if (size > PERDURE_SIZE_MASK)
		event_load(p, size, frame);
	else if (runtime_wants_loads)
		hook_load(p, (flags & ~PERDURE_READ) | size, frame);
}

void hook_lanes(void *p, uint64_t element, uint64_t mask, uint32_t flags, const struct frame *frame)
{
	while (mask) {
		unsigned first = __builtin_ctzll(mask), count;
		uint64_t rest = ~(mask >> first);
		char *start = (char *)p + first * element;

		count = rest ? __builtin_ctzll(rest) : 64;
		lanes_part(start, count * element, flags, frame);
		if (first + count >= 64)
			break;
		mask &= ~0ull << (first + count);
	}
}

/* ---- flushes and fences ---- */

static void commit_flush(struct session_thread *thread, const void *p, uint32_t kind,
			 uint32_t stack)
{
	uint64_t line = line_of((uintptr_t)p);

	thread->flushes++;
	lines_flush(&runtime_session->lines, &thread->lines, line, stack,
		    kind == PERDURE_CLFLUSH ? LINES_ORDERED : LINES_FLUSH, (const uint64_t *)line);
	tell(thread, PERDURE_EVENT_FLUSH, kind, p, 0, stack);
}

void hook_commit_flush(const void *p, uint32_t kind, uint32_t stack)
{
	struct session_thread *thread = thread_enter();

	if (!thread)
		return;
	commit_flush(thread, p, kind, stack);
	thread_leave();
}

void hook_flush(const void *p, uint64_t descriptor, const struct frame *frame)
{
	bool followed = is_followed(p) && !is_trusted(frame) && !runtime_recovers;
	uint32_t kind = descriptor, stack;
	struct session_thread *thread;

	if (runtime_explores) {
		reached_place(frame->return_address);
		reached_memory(p, frame->return_address);
	}
	if (runtime_races) {
		races_flush(p, 1, kind, frame->return_address);
		return;
	}
	make_way(descriptor);
	if (runtime_relogs) {
		log_recovery(kind == PERDURE_CLFLUSH ? HISTORY_ORDERED : HISTORY_FLUSH, 0, p, 0,
			     frame);
		__perdure_inline.pending = 1;
	}
	thread = followed ? thread_enter_waiting() : NULL;
	if (!thread) {
		if (followed)
			note_skipped();
		return;
	}
	stack = stack_capture(frame);
	__perdure_inline.stored = 1;
	if (buffers_on) {
		buffer_flush(p, kind, stack);
		__perdure_inline.pending = 1;
	} else {
		commit_flush(thread, p, kind, stack);
		__perdure_inline.pending = thread->lines.flushes != 0;
	}
	thread_leave();
}

static void commit_fence(struct session_thread *thread, uint32_t kind, bool idle, uint32_t stack)
{
	thread->fences++;
	if (kind == PERDURE_SFENCE || kind == PERDURE_MFENCE || kind == PERDURE_RMW_FENCE)
		lines_fence(&runtime_session->lines, &thread->lines, stack, idle);
	tell(thread, PERDURE_EVENT_FENCE, kind, NULL, 0, stack);
}

void hook_commit_sfence(bool idle, uint32_t stack)
{
	struct session_thread *thread = thread_enter();

	if (!thread)
		return;
	commit_fence(thread, PERDURE_SFENCE, idle, stack);
	thread_leave();
}

void hook_fence(uint64_t descriptor, const struct frame *frame)
{
	uint32_t kind = descriptor, stack;
	struct session_thread *thread;
	bool idle;

	if (runtime_explores) {
		reached_place(frame->return_address);
		reached_memory(NULL, frame->return_address);
	}
	if (runtime_races) {
		if (kind <= PERDURE_RMW_FENCE && kind != PERDURE_LFENCE)
			races_fence(frame->return_address);
		return;
	}
	if (kind != PERDURE_RMW_FENCE) /* hook_visible, or the lock, has done it */
		make_way(descriptor);
	runtime_thread.fenced |= kind == PERDURE_THREAD_FENCE_RELEASE || kind == PERDURE_MFENCE;
	if (causality_on && kind != PERDURE_SFENCE && kind != PERDURE_RMW_FENCE)
		causality_fence(kind != PERDURE_THREAD_FENCE_RELEASE,
				kind != PERDURE_THREAD_FENCE_ACQUIRE && kind != PERDURE_LFENCE);
	if (kind >= PERDURE_THREAD_FENCE_ACQUIRE && !(runtime_session && runtime_wants_loads))
		return;
	if (runtime_relogs && kind != PERDURE_LFENCE && kind < PERDURE_THREAD_FENCE_ACQUIRE) {
		log_recovery(HISTORY_FENCE, 0, NULL, 0, frame);
		__perdure_inline.pending = 0;
	}
	thread = runtime_recovers         ? NULL
		 : kind == PERDURE_SFENCE ? thread_enter_waiting()
					  : thread_enter();
	if (!thread)
		return;
	stack = stack_capture(frame);
	idle = kind == PERDURE_SFENCE && !__perdure_inline.stored && !is_trusted(frame);
	if (kind == PERDURE_SFENCE && buffers_on)
		buffer_sfence(idle, stack);
	else
		commit_fence(thread, kind, idle, stack);
	if (kind == PERDURE_SFENCE || kind == PERDURE_MFENCE || kind == PERDURE_RMW_FENCE) {
		__perdure_inline.pending = 0;
		/* A locked instruction is a store, too: an sfence after it may order that. */
		__perdure_inline.stored = kind == PERDURE_RMW_FENCE;
	}
	thread_leave();
	if (causality_on && kind == PERDURE_RMW_FENCE)
		causality_fenced();
}

/* ---- threads as fibers ---- */

/* Variables there come and go without a word. */
static bool on_own_stack(const void *p)
{
	return (uintptr_t)p >= (uintptr_t)__builtin_frame_address(0) &&
	       (uintptr_t)p < runtime_thread.stack_high;
}

/* Accesses to PM have hooks of their own for what is done here. */
static void before_visible(const void *p, uint64_t descriptor)
{
	uint32_t size = descriptor & PERDURE_SIZE_MASK;
	bool rmw = descriptor & PERDURE_RMW;

	if (buffers_on && (rmw || !in_window(p)))
		buffer_continue(descriptor);
	if (buffers_on && rmw)
		buffer_drain();
	if (!fibers_preempt || rmw || !in_window(p))
		fiber_point(POINT_ACCESS);
	if (buffers_on && descriptor & PERDURE_STORES && !rmw && !in_window(p) && size <= 8 &&
	    !on_own_stack(p))
		buffer_ordinary_store((void *)p, size, descriptor);
}

void hook_visible(const void *p, uint64_t descriptor, const struct frame *frame)
{
	(void)frame;
	if (runtime_races) {
		races_visible(p, descriptor);
		return;
	}
	if (!fibers_on)
		return;
	if (!p && !(uint32_t)descriptor) {
		fiber_point(POINT_SPIN);
		return;
	}
	before_visible(p, descriptor);
	if (causality_on)
		causality_access(p, descriptor, buffers_on);
}

/* ---- what nobody understands ---- */

void hook_unknown(const char *text, const void *p, const struct frame *frame)
{
	struct session_thread *thread;

	(void)frame;
	if (p && !in_window(p))
		return;
	thread = thread_enter();
	if (!thread)
		return;
	session_limit(runtime_session, thread_owner(), text);
	thread_leave();
}
