/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --pm-heap: malloc and its relatives, in PM. Research indexes use malloc as their PM allocator;
 * preloaded, this library gives them memory in the window. Kept apart from the runtime, so that a
 * program without --pm-heap keeps its own allocator.
 *
 * Everything the allocator knows lies outside PM, except that free objects are linked through
 * themselves. What the program stores in an object is forgotten when it is freed.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "heap/heap.h"

#define PUBLIC __attribute__((visibility("default")))

enum {
	SPAN_SHIFT = 16,
	SPAN = 1 << SPAN_SHIFT,
	SPANS = HEAP_SIZE >> SPAN_SHIFT,
	SMALL_STEP = 16,
	SMALL_MAX = 1024, /* steps of 16 up to here, then powers of two up to half a span */
	CLASSES = SMALL_MAX / SMALL_STEP + 6,
};

struct free_object {
	struct free_object *next;
};

static struct {
	int lock;
	bool mapped, shared;
	bool chosen;         /* which arena it is */
	uint64_t first_span; /* of the arena */
	uint64_t spans_used;
	struct free_object *free_small[CLASSES];
	uint32_t free_runs; /* span number + 1 of the first free run */
} heap;

/*
 * Per span: the class of its objects + 1, or 0. For the first span of a run its length; for the
 * last span of a free run also where it starts, so that neighbours can be joined.
 */
static uint8_t span_class[SPANS];
static uint32_t run_length[SPANS];
static uint32_t run_start[SPANS];
static bool run_is_free[SPANS]; /* for the first and the last span of a run */
static uint32_t next_free[SPANS], previous_free[SPANS];

/* ---- lock ---- */

static void lock(void)
{
	while (__atomic_exchange_n(&heap.lock, 1, __ATOMIC_ACQUIRE))
		sched_yield();
}

static void unlock(void)
{
	__atomic_store_n(&heap.lock, 0, __ATOMIC_RELEASE);
}

__attribute__((constructor)) static void survive_fork(void)
{
	pthread_atfork(lock, unlock, unlock);
}

/* ---- spans ---- */

enum { ARENA_SPANS = SPANS / HEAP_ARENAS };

static char *span_address(uint64_t span)
{
	return (char *)HEAP_BASE + (span << SPAN_SHIFT);
}

static uint64_t span_of(const void *p)
{
	return ((uint64_t)p - HEAP_BASE) >> SPAN_SHIFT;
}

/* A zygote allocates from an arena that no crash is about, until it is an execution. */
static void choose_arena(void)
{
	extern char **environ;

	if (!environ) {
		heap.first_span = (uint64_t)HEAP_BOOT * ARENA_SPANS;
		return;
	}
	if (!heap.chosen && getenv("PERDURE_ZYGOTE"))
		heap.first_span = (uint64_t)HEAP_BOOT * ARENA_SPANS;
	else if (!heap.chosen && !heap.mapped)
		heap.first_span = 0;
	heap.chosen = true;
}

static bool map_heap(void)
{
	uint64_t base;
	long result;

	choose_arena();
	if (heap.mapped)
		return true;
	base = (uint64_t)span_address(heap.first_span);
	result = syscall(SYS_mmap, base, (size_t)HEAP_ARENA_SIZE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0L);
	heap.mapped = (uint64_t)result == base;
	heap.spans_used = heap.first_span ? 0 : 1; /* the first one has the roots */
	return heap.mapped;
}

PUBLIC void __perdure_heap_enter(unsigned arena, int shared)
{
	memset(heap.free_small, 0, sizeof(heap.free_small));
	heap.free_runs = 0;
	heap.chosen = true;
	heap.first_span = (uint64_t)arena * ARENA_SPANS;
	heap.mapped = heap.shared = shared;
	heap.spans_used = arena ? 0 : 1;
	if (!arena && __perdure_heap_grown)
		__perdure_heap_grown(SPAN);
}

static bool in_arena(uint64_t span)
{
	return span - heap.first_span < ARENA_SPANS;
}

static void unlink_run(uint64_t run)
{
	if (previous_free[run])
		next_free[previous_free[run] - 1] = next_free[run];
	else
		heap.free_runs = next_free[run];
	if (next_free[run])
		previous_free[next_free[run] - 1] = previous_free[run];
	run_is_free[run] = run_is_free[run + run_length[run] - 1] = false;
}

static void link_run(uint64_t run, uint64_t length)
{
	run_length[run] = length;
	run_start[run + length - 1] = run;
	run_is_free[run] = run_is_free[run + length - 1] = true;
	previous_free[run] = 0;
	next_free[run] = heap.free_runs;
	if (heap.free_runs)
		previous_free[heap.free_runs - 1] = run + 1;
	heap.free_runs = run + 1;
}

/* Joins the run with free neighbours. Its memory goes back to the system, and reads as zero. */
static void give_run(uint64_t run)
{
	uint64_t length = run_length[run];

	syscall(SYS_madvise, span_address(run), length << SPAN_SHIFT,
		heap.shared ? MADV_REMOVE : MADV_DONTNEED);
	if (run + length < heap.first_span + heap.spans_used && run_is_free[run + length]) {
		uint64_t next = run + length;

		unlink_run(next);
		length += run_length[next];
	}
	if (run > heap.first_span && run_is_free[run - 1]) {
		run = run_start[run - 1];
		unlink_run(run);
		length += run_length[run];
	}
	link_run(run, length);
}

/* The first free run that is long enough; what is left over stays free. */
static uint64_t take_free_run(uint64_t length)
{
	for (uint32_t link = heap.free_runs; link; link = next_free[link - 1]) {
		uint64_t run = link - 1, left = run_length[run] - length;

		if (run_length[run] < length)
			continue;
		unlink_run(run);
		run_length[run] = length;
		if (left)
			link_run(run + length, left);
		return run + 1;
	}
	return 0;
}

/* Only the first arena is followed. */
static void note_growth(void)
{
	if (__perdure_heap_grown && !heap.first_span)
		__perdure_heap_grown(heap.spans_used << SPAN_SHIFT);
}

/* Number + 1 of a run of spans that reads as zero; 0 if there is no room. */
static uint64_t take_run(uint64_t length)
{
	uint64_t run = take_free_run(length);

	if (run)
		return run;
	if (!map_heap() || heap.spans_used + length > ARENA_SPANS)
		return 0;
	run = heap.first_span + heap.spans_used;
	heap.spans_used += length;
	run_length[run] = length;
	note_growth();
	return run + 1;
}

PUBLIC uint64_t __perdure_heap_used(void)
{
	return heap.first_span ? 0 : heap.spans_used << SPAN_SHIFT;
}

/* ---- small objects ---- */

static unsigned class_of(size_t size)
{
	unsigned class = SMALL_MAX / SMALL_STEP;

	if (size <= SMALL_MAX)
		return size ? (size + SMALL_STEP - 1) / SMALL_STEP - 1 : 0;
	for (size_t room = SMALL_MAX * 2; room < size; room *= 2)
		class ++;
	return class;
}

static size_t class_size(unsigned class)
{
	if (class < SMALL_MAX / SMALL_STEP)
		return (class + 1) * SMALL_STEP;
	return (size_t)SMALL_MAX * 2 << (class - SMALL_MAX / SMALL_STEP);
}

static bool refill(unsigned class)
{
	size_t size = class_size(class);
	uint64_t run = take_run(1);

	if (!run)
		return false;
	span_class[run - 1] = class + 1;
	for (size_t at = SPAN / size * size; at > 0; at -= size) {
		struct free_object *object = (void *)(span_address(run - 1) + at - size);

		object->next = heap.free_small[class];
		heap.free_small[class] = object;
	}
	return true;
}

static void *allocate(size_t size, bool *zero)
{
	struct free_object *object = NULL;

	*zero = false;
	lock();
	if (size <= SPAN / 2) {
		unsigned class = class_of(size);

		if (heap.free_small[class] || refill(class)) {
			object = heap.free_small[class];
			heap.free_small[class] = object->next;
		}
	} else if (size < HEAP_ARENA_SIZE) {
		uint64_t run = take_run((size + SPAN - 1) >> SPAN_SHIFT);

		*zero = true;
		object = run ? (void *)span_address(run - 1) : NULL;
	}
	unlock();
	if (!object)
		errno = ENOMEM;
	return object;
}

static bool is_ours(const void *p)
{
	return (uint64_t)p - HEAP_BASE < HEAP_SIZE;
}

static size_t room_of(const void *p)
{
	uint64_t span = span_of(p);

	if (!in_arena(span) && !span_class[span] && !run_length[span])
		return __perdure_heap_old_size ? __perdure_heap_old_size(p) : 0;
	if (span_class[span])
		return class_size(span_class[span] - 1);
	return (size_t)run_length[span] << SPAN_SHIFT;
}

/* ---- the functions; no libc memset or memcpy where the program did not ask for them ---- */

static void clear(void *p, size_t n)
{
	__asm__ volatile("rep stosb" : "+D"(p), "+c"(n) : "a"(0) : "memory");
}

static void *tell(void *p, size_t size, bool zeroed, const void *frame)
{
	if (p && __perdure_heap_allocated)
		__perdure_heap_allocated(p, size, zeroed, frame);
	return p;
}

PUBLIC void *malloc(size_t size)
{
	bool zero;

	return tell(allocate(size, &zero), size, false, __builtin_frame_address(0));
}

PUBLIC void *calloc(size_t count, size_t size)
{
	size_t total;
	bool zero;
	void *p;

	if (__builtin_mul_overflow(count, size, &total)) {
		errno = ENOMEM;
		return NULL;
	}
	p = allocate(total, &zero);
	if (p && !zero)
		clear(p, total);
	return tell(p, total, true, __builtin_frame_address(0));
}

PUBLIC void free(void *p)
{
	uint64_t span = span_of(p);

	if (!p || !is_ours(p) || !in_arena(span)) /* another arena's are never used again */
		return;
	if (__perdure_heap_freed)
		__perdure_heap_freed(p, room_of(p));
	lock();
	if (span_class[span]) {
		struct free_object *object = p;

		object->next = heap.free_small[span_class[span] - 1];
		heap.free_small[span_class[span] - 1] = object;
	} else {
		give_run(span);
	}
	unlock();
}

/* A large object grows into free spans behind it, if there are enough. */
static bool grow_in_place(void *p, size_t size)
{
	uint64_t span = span_of(p), wanted = (size + SPAN - 1) >> SPAN_SHIFT, end;
	bool grown = false;

	if (!in_arena(span) || span_class[span] || size >= HEAP_ARENA_SIZE)
		return false;
	lock();
	end = span + run_length[span];
	if (end == heap.first_span + heap.spans_used &&
	    span + wanted <= heap.first_span + ARENA_SPANS) {
		heap.spans_used = span + wanted - heap.first_span;
		grown = true;
	} else if (end < heap.first_span + heap.spans_used && run_is_free[end] &&
		   run_length[span] + run_length[end] >= wanted) {
		uint64_t left = run_length[span] + run_length[end] - wanted;

		unlink_run(end);
		if (left)
			link_run(span + wanted, left);
		grown = true;
	}
	if (grown)
		run_length[span] = wanted;
	if (grown)
		note_growth();
	unlock();
	return grown;
}

PUBLIC void *realloc(void *p, size_t size)
{
	void *bigger;

	if (!p)
		return malloc(size);
	if (!size) {
		free(p);
		return NULL;
	}
	if (!is_ours(p)) {
		errno = EINVAL;
		return NULL;
	}
	if ((size <= room_of(p) && size > room_of(p) / 4) ||
	    (size > room_of(p) && grow_in_place(p, size)))
		return p;
	bigger = malloc(size);
	if (!bigger)
		return NULL;
	memcpy(bigger, p, size < room_of(p) ? size : room_of(p));
	free(p);
	return bigger;
}

/* More than a span: a run that is long enough for an aligned one, the rest given back. */
static void *allocate_far_aligned(size_t alignment, size_t size)
{
	uint64_t wanted = (size + SPAN - 1) >> SPAN_SHIFT, step = alignment >> SPAN_SHIFT;
	uint64_t run, start, end;

	lock();
	run = take_run(wanted + step);
	if (!run--) {
		unlock();
		return NULL;
	}
	start = (run + step - 1) / step * step;
	end = run + run_length[run];
	run_length[start] = wanted;
	if (start > run) {
		run_length[run] = start - run;
		give_run(run);
	}
	if (start + wanted < end) {
		run_length[start + wanted] = end - start - wanted;
		give_run(start + wanted);
	}
	unlock();
	return span_address(start);
}

/* A multiple of the alignment that is a class size is aligned, as spans are. */
void *heap_allocate(size_t alignment, size_t size, const void *frame)
{
	void *p = NULL;
	bool zero;

	if (size > HEAP_ARENA_SIZE - alignment || alignment > HEAP_ARENA_SIZE / 4) {
		errno = ENOMEM;
		return NULL;
	}
	if (alignment > SPAN) {
		p = allocate_far_aligned(alignment, size ? size : 1);
	} else {
		if (alignment > SMALL_STEP)
			size = size <= alignment ? alignment
						 : (size + alignment - 1) / alignment * alignment;
		if (alignment > SMALL_STEP && size > SMALL_MAX / 2 && size < SPAN)
			size = (size_t)1 << (64 - __builtin_clzl(size - 1));
		if (size > SPAN / 4 && size <= SPAN)
			size = SPAN;
		p = allocate(size, &zero);
	}
	if (!p)
		errno = ENOMEM;
	return tell(p, size, false, frame);
}

PUBLIC int posix_memalign(void **result, size_t alignment, size_t size)
{
	void *p;

	if (alignment % sizeof(void *) || alignment & (alignment - 1) || !alignment)
		return EINVAL;
	p = heap_allocate(alignment, size, __builtin_frame_address(0));
	if (!p)
		return ENOMEM;
	*result = p;
	return 0;
}

PUBLIC void *aligned_alloc(size_t alignment, size_t size)
{
	return heap_allocate(alignment, size, __builtin_frame_address(0));
}

PUBLIC void *memalign(size_t alignment, size_t size)
{
	return heap_allocate(alignment, size, __builtin_frame_address(0));
}

PUBLIC void *valloc(size_t size)
{
	return heap_allocate(4096, size, __builtin_frame_address(0));
}

PUBLIC void *pvalloc(size_t size)
{
	return heap_allocate(4096, (size + 4095) / 4096 * 4096, __builtin_frame_address(0));
}

PUBLIC size_t malloc_usable_size(void *p)
{
	return p && is_ours(p) ? room_of(p) : 0;
}
