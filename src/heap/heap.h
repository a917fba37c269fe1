/* SPDX-License-Identifier: BSD-3-Clause */
/* What libperdure-heap.so and the runtime tell each other; either may be missing. */
#ifndef HEAP_HEAP_H
#define HEAP_HEAP_H

#include <stddef.h>
#include <stdint.h>

/* The upper quarter of the PM window. */
#define HEAP_BASE 0x20c000000000ull
#define HEAP_SIZE (1ull << 38)

/*
 * The heap is cut into arenas. Programs use the first one; under check, the n-th execution after a
 * crash the one after that, and what is allocated before main, which no crash can bring back, the
 * last one.
 */
enum { HEAP_ARENAS = 4, HEAP_BOOT = HEAP_ARENAS - 1 };
#define HEAP_ARENA_SIZE (HEAP_SIZE / HEAP_ARENAS)

/* Root slots: the first bytes of the first arena. */
enum { HEAP_ROOTS = 64 };

/* Heap: from now on allocate from this arena, which is empty; `shared`: it is mapped already. */
void __perdure_heap_enter(unsigned arena, int shared) __attribute__((weak, visibility("default")));

/* Runtime: an object was allocated; `zeroed` by the allocator itself. `frame` is the caller's. */
void __perdure_heap_allocated(void *p, size_t size, int zeroed, const void *frame)
	__attribute__((weak, visibility("default")));

/* Runtime: the size of an object that another arena has; 0 if it is not known. */
size_t __perdure_heap_old_size(const void *p) __attribute__((weak, visibility("default")));

/* Heap: bytes of the window in use, from HEAP_BASE. */
uint64_t __perdure_heap_used(void) __attribute__((weak, visibility("default")));

/* Runtime: the heap uses more of the window now. */
void __perdure_heap_grown(uint64_t used) __attribute__((weak, visibility("default")));

/* Runtime: an object was freed; what was stored there does not matter any more. */
void __perdure_heap_freed(void *p, size_t size) __attribute__((weak, visibility("default")));

/* In the heap itself: memory for the caller with this frame; null if there is none. */
void *heap_allocate(size_t alignment, size_t size, const void *frame);

#endif
