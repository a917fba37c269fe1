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
	bool mapped;
	uint64_t spans_used;
	struct free_object *free_small[CLASSES];
	uint32_t free_large; /* span number + 1 of the first free run, linked through next_run */
} heap;

/* Per span: the class of its objects + 1, or 0; for the first span of a large object its length. */
static uint8_t span_class[SPANS];
static uint32_t run_length[SPANS];
static uint32_t next_run[SPANS];

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

static char *span_address(uint64_t span)
{
	return (char *)HEAP_BASE + (span << SPAN_SHIFT);
}

static uint64_t span_of(const void *p)
{
	return ((uint64_t)p - HEAP_BASE) >> SPAN_SHIFT;
}

static bool map_heap(void)
{
	long result;

	if (heap.mapped)
		return true;
	result = syscall(SYS_mmap, HEAP_BASE, (size_t)HEAP_SIZE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0L);
	heap.mapped = (uint64_t)result == HEAP_BASE;
	return heap.mapped;
}

static uint64_t take_free_run(uint64_t length)
{
	for (uint32_t *link = &heap.free_large; *link; link = &next_run[*link - 1]) {
		uint64_t run = *link - 1;

		if (run_length[run] == length) {
			*link = next_run[run];
			return run + 1;
		}
	}
	return 0;
}

/* Number + 1 of a run of spans; *fresh says that its memory was never used. */
static uint64_t take_run(uint64_t length, bool *fresh)
{
	uint64_t run = take_free_run(length);

	*fresh = !run;
	if (run)
		return run;
	if (!map_heap() || heap.spans_used + length > SPANS)
		return 0;
	run = heap.spans_used;
	heap.spans_used += length;
	run_length[run] = length;
	if (__perdure_heap_grown)
		__perdure_heap_grown(heap.spans_used << SPAN_SHIFT);
	return run + 1;
}

PUBLIC uint64_t __perdure_heap_used(void)
{
	return heap.spans_used << SPAN_SHIFT;
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
	bool fresh;
	uint64_t run = take_run(1, &fresh);

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
	} else if (size < HEAP_SIZE) {
		uint64_t run = take_run((size + SPAN - 1) >> SPAN_SHIFT, zero);

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

	if (span_class[span])
		return class_size(span_class[span] - 1);
	return (size_t)run_length[span] << SPAN_SHIFT;
}

/* ---- the functions; no libc memset or memcpy where the program did not ask for them ---- */

static void clear(void *p, size_t n)
{
	__asm__ volatile("rep stosb" : "+D"(p), "+c"(n) : "a"(0) : "memory");
}

PUBLIC void *malloc(size_t size)
{
	bool zero;

	return allocate(size, &zero);
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
	return p;
}

PUBLIC void free(void *p)
{
	uint64_t span = span_of(p);

	if (!p || !is_ours(p))
		return;
	if (__perdure_heap_freed)
		__perdure_heap_freed(p, room_of(p));
	lock();
	if (span_class[span]) {
		struct free_object *object = p;

		object->next = heap.free_small[span_class[span] - 1];
		heap.free_small[span_class[span] - 1] = object;
	} else {
		next_run[span] = heap.free_large;
		heap.free_large = span + 1;
	}
	unlock();
}

PUBLIC void *realloc(void *p, size_t size)
{
	void *bigger;

	if (!p)
		return malloc(size);
	if (!is_ours(p)) {
		errno = EINVAL;
		return NULL;
	}
	if (size <= room_of(p) && size > room_of(p) / 4)
		return p;
	bigger = malloc(size);
	if (!bigger)
		return NULL;
	memcpy(bigger, p, size < room_of(p) ? size : room_of(p));
	free(p);
	return bigger;
}

/* A multiple of the alignment that is a class size is aligned, as spans are. */
static void *allocate_aligned(size_t alignment, size_t size)
{
	bool zero;

	if (alignment > SPAN)
		return NULL;
	if (alignment > SMALL_STEP)
		size = size <= alignment ? alignment
					 : (size + alignment - 1) / alignment * alignment;
	if (alignment > SMALL_STEP && size > SMALL_MAX / 2 && size < SPAN)
		size = (size_t)1 << (64 - __builtin_clzl(size - 1));
	if (size > SPAN / 4 && size <= SPAN)
		size = SPAN;
	return allocate(size, &zero);
}

PUBLIC int posix_memalign(void **result, size_t alignment, size_t size)
{
	void *p;

	if (alignment % sizeof(void *) || alignment & (alignment - 1) || !alignment)
		return EINVAL;
	p = allocate_aligned(alignment, size);
	if (!p)
		return ENOMEM;
	*result = p;
	return 0;
}

PUBLIC void *aligned_alloc(size_t alignment, size_t size)
{
	return allocate_aligned(alignment, size);
}

PUBLIC void *memalign(size_t alignment, size_t size)
{
	return allocate_aligned(alignment, size);
}

PUBLIC void *valloc(size_t size)
{
	return allocate_aligned(4096, size);
}

PUBLIC size_t malloc_usable_size(void *p)
{
	return p && is_ours(p) ? room_of(p) : 0;
}
