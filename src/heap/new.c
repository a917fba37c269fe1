/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * C++'s new and delete, under the names that compilers give them: allocators such as jemalloc bring
 * their own, which do not call malloc.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "heap/heap.h"

#define PUBLIC __attribute__((visibility("default")))
#define FRAME __builtin_frame_address(0)

/* Of the C++ library, where there is one. */
typedef void (*new_handler)(void);
extern new_handler get_new_handler(void) __asm__("_ZSt15get_new_handlerv") __attribute__((weak));
extern void throw_bad_alloc(void) __asm__("_ZSt17__throw_bad_allocv") __attribute__((weak));

static void *allocate(size_t alignment, size_t size, bool throws, const void *frame)
{
	for (;;) {
		void *p = heap_allocate(alignment, size ? size : 1, frame);
		new_handler handler = p || !get_new_handler ? NULL : get_new_handler();

		if (p || (!handler && !throws))
			return p;
		if (!handler && throw_bad_alloc)
			throw_bad_alloc();
		if (!handler)
			abort();
		handler();
	}
}

#define NEW(name, throws, ...)                                                                     \
	PUBLIC void *name(size_t size, ##__VA_ARGS__);                                             \
	PUBLIC void *name(size_t size, ##__VA_ARGS__)                                              \
	{                                                                                          \
		return allocate(1, size, throws, FRAME);                                           \
	}
#define NEW_ALIGNED(name, throws, ...)                                                             \
	PUBLIC void *name(size_t size, size_t alignment, ##__VA_ARGS__);                           \
	PUBLIC void *name(size_t size, size_t alignment, ##__VA_ARGS__)                            \
	{                                                                                          \
		return allocate(alignment, size, throws, FRAME);                                   \
	}
#define DELETE(name, ...)                                                                          \
	PUBLIC void name(void *p, ##__VA_ARGS__);                                                  \
	PUBLIC void name(void *p, ##__VA_ARGS__)                                                   \
	{                                                                                          \
		free(p);                                                                           \
	}
#define UNUSED(type) type unused __attribute__((unused))

NEW(_Znwm, true)
NEW(_Znam, true)
NEW(_ZnwmRKSt9nothrow_t, false, UNUSED(const void *))
NEW(_ZnamRKSt9nothrow_t, false, UNUSED(const void *))
NEW_ALIGNED(_ZnwmSt11align_val_t, true)
NEW_ALIGNED(_ZnamSt11align_val_t, true)
NEW_ALIGNED(_ZnwmSt11align_val_tRKSt9nothrow_t, false, UNUSED(const void *))
NEW_ALIGNED(_ZnamSt11align_val_tRKSt9nothrow_t, false, UNUSED(const void *))

DELETE(_ZdlPv)
DELETE(_ZdaPv)
DELETE(_ZdlPvm, UNUSED(size_t))
DELETE(_ZdaPvm, UNUSED(size_t))
DELETE(_ZdlPvRKSt9nothrow_t, UNUSED(const void *))
DELETE(_ZdaPvRKSt9nothrow_t, UNUSED(const void *))
DELETE(_ZdlPvSt11align_val_t, UNUSED(size_t))
DELETE(_ZdaPvSt11align_val_t, UNUSED(size_t))
DELETE(_ZdlPvmSt11align_val_t, UNUSED(size_t), size_t alignment __attribute__((unused)))
DELETE(_ZdaPvmSt11align_val_t, UNUSED(size_t), size_t alignment __attribute__((unused)))
DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t, UNUSED(size_t), const void *tag __attribute__((unused)))
DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t, UNUSED(size_t), const void *tag __attribute__((unused)))
