/* SPDX-License-Identifier: BSD-3-Clause */
/* What libperdure-heap.so and the runtime tell each other; either may be missing. */
#ifndef HEAP_HEAP_H
#define HEAP_HEAP_H

#include <stddef.h>
#include <stdint.h>

/* The upper quarter of the PM window. */
#define HEAP_BASE 0x20c000000000ull
#define HEAP_SIZE (1ull << 38)

/* Heap: bytes of the window in use, from HEAP_BASE. */
uint64_t __perdure_heap_used(void) __attribute__((weak, visibility("default")));

/* Runtime: the heap uses more of the window now. */
void __perdure_heap_grown(uint64_t used) __attribute__((weak, visibility("default")));

/* Runtime: an object was freed; what was stored there does not matter any more. */
void __perdure_heap_freed(void *p, size_t size) __attribute__((weak, visibility("default")));

#endif
