/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libpmem and libpmem2 as a prebuilt library: their functions are told as events and done here.
 * If the library itself was built with perdure-cc, its own code tells everything, and these only
 * pass the call on.
 */
#include "runtime/runtime.h"

#include <errno.h>
#include <sys/mman.h>

/* PMEM_F_MEM_NODRAIN and …NOFLUSH; the same in libpmem2. */
enum { NODRAIN = 1 << 0, NOFLUSH = 1 << 5 };

/* The library's function if it is there and tells its own events, otherwise null. */
static void *instrumented(const char *name, void **cache)
{
	static char none;

	if (!*cache) {
		void *real = real_find(name);

		*cache = real && (!runtime_session || modules_instrumented(real)) ? real : &none;
	}
	return *cache == &none ? NULL : *cache;
}

#define PASS_ON(name, ...)                                                                         \
	do {                                                                                       \
		static void *cache_;                                                               \
		__typeof__(&name) real_ = (__typeof__(&name))instrumented(#name, &cache_);         \
		if (real_)                                                                         \
			return real_(__VA_ARGS__);                                                 \
	} while (0)

/* Addresses outside PM are the library's own business. */
#define PASS_ON_OUTSIDE(p, name, ...)                                                              \
	do {                                                                                       \
		if (!runtime_session || !in_window(p))                                             \
			return REAL(name)(__VA_ARGS__);                                            \
	} while (0)

PUBLIC void pmem_flush(const void *p, size_t n);
PUBLIC void pmem_drain(void);
PUBLIC void pmem_persist(const void *p, size_t n);
PUBLIC void pmem_deep_flush(const void *p, size_t n);
PUBLIC int pmem_deep_drain(const void *p, size_t n);
PUBLIC int pmem_deep_persist(const void *p, size_t n);
PUBLIC int pmem_msync(const void *p, size_t n);
PUBLIC int pmem_is_pmem(const void *p, size_t n);

PUBLIC void pmem_flush(const void *p, size_t n)
{
	PASS_ON(pmem_flush, p, n);
	PASS_ON_OUTSIDE(p, pmem_flush, p, n);
	event_flush(p, n, PERDURE_CLWB, FRAME);
}

PUBLIC void pmem_drain(void)
{
	PASS_ON(pmem_drain);
	event_fence(PERDURE_SFENCE, FRAME);
}

PUBLIC void pmem_persist(const void *p, size_t n)
{
	PASS_ON(pmem_persist, p, n);
	PASS_ON_OUTSIDE(p, pmem_persist, p, n);
	event_flush(p, n, PERDURE_CLWB, FRAME);
	event_fence(PERDURE_SFENCE, FRAME);
}

PUBLIC void pmem_deep_flush(const void *p, size_t n)
{
	PASS_ON(pmem_deep_flush, p, n);
	PASS_ON_OUTSIDE(p, pmem_deep_flush, p, n);
	event_flush(p, n, PERDURE_CLWB, FRAME);
}

PUBLIC int pmem_deep_drain(const void *p, size_t n)
{
	PASS_ON(pmem_deep_drain, p, n);
	PASS_ON_OUTSIDE(p, pmem_deep_drain, p, n);
	event_fence(PERDURE_MFENCE, FRAME);
	return 0;
}

PUBLIC int pmem_deep_persist(const void *p, size_t n)
{
	PASS_ON(pmem_deep_persist, p, n);
	PASS_ON_OUTSIDE(p, pmem_deep_persist, p, n);
	event_flush(p, n, PERDURE_CLWB, FRAME);
	event_fence(PERDURE_MFENCE, FRAME);
	return 0;
}

PUBLIC int pmem_msync(const void *p, size_t n)
{
	uintptr_t start = (uintptr_t)p & ~4095ul;

	PASS_ON(pmem_msync, p, n);
	PASS_ON_OUTSIDE(p, pmem_msync, p, n);
	event_persist((void *)start, (uintptr_t)p + n - start, FRAME);
	return 0;
}

PUBLIC int pmem_is_pmem(const void *p, size_t n)
{
	PASS_ON_OUTSIDE(p, pmem_is_pmem, p, n);
	return 1;
}

/* ---- copies and fills ---- */

/*
 * The library chooses between streaming and ordinary stores by length; either way the bytes are
 * flushed when the function returns, and durable unless the caller asked for no drain.
 */
static void finish(const void *p, size_t n, unsigned flags, const struct frame *frame)
{
	if (!(flags & NOFLUSH))
		event_flush(p, n, PERDURE_CLWB, frame);
	if (!(flags & (NODRAIN | NOFLUSH)))
		event_fence(PERDURE_SFENCE, frame);
}

static void *copy(void *to, const void *from, size_t n, unsigned flags, const struct frame *frame)
{
	event_load(from, n, frame);
	event_move(to, from, n, frame);
	finish(to, n, flags, frame);
	return to;
}

static void *fill(void *to, int byte, size_t n, unsigned flags, const struct frame *frame)
{
	event_fill(to, byte, n, false, frame);
	finish(to, n, flags, frame);
	return to;
}

#define COPIES(name, flags)                                                                        \
	PUBLIC void *name(void *to, const void *from, size_t n);                                   \
	PUBLIC void *name(void *to, const void *from, size_t n)                                    \
	{                                                                                          \
		PASS_ON(name, to, from, n);                                                        \
		PASS_ON_OUTSIDE(to, name, to, from, n);                                            \
		return copy(to, from, n, flags, FRAME);                                            \
	}                                                                                          \
	struct ignore_semicolon
#define COPIES_WITH_FLAGS(name)                                                                    \
	PUBLIC void *name(void *to, const void *from, size_t n, unsigned flags);                   \
	PUBLIC void *name(void *to, const void *from, size_t n, unsigned flags)                    \
	{                                                                                          \
		PASS_ON(name, to, from, n, flags);                                                 \
		PASS_ON_OUTSIDE(to, name, to, from, n, flags);                                     \
		return copy(to, from, n, flags, FRAME);                                            \
	}                                                                                          \
	struct ignore_semicolon
#define FILLS(name, flags)                                                                         \
	PUBLIC void *name(void *to, int byte, size_t n);                                           \
	PUBLIC void *name(void *to, int byte, size_t n)                                            \
	{                                                                                          \
		PASS_ON(name, to, byte, n);                                                        \
		PASS_ON_OUTSIDE(to, name, to, byte, n);                                            \
		return fill(to, byte, n, flags, FRAME);                                            \
	}                                                                                          \
	struct ignore_semicolon

COPIES(pmem_memcpy_persist, 0);
COPIES(pmem_memcpy_nodrain, NODRAIN);
COPIES(pmem_memmove_persist, 0);
COPIES(pmem_memmove_nodrain, NODRAIN);
COPIES_WITH_FLAGS(pmem_memcpy);
COPIES_WITH_FLAGS(pmem_memmove);
FILLS(pmem_memset_persist, 0);
FILLS(pmem_memset_nodrain, NODRAIN);

PUBLIC void *pmem_memset(void *to, int byte, size_t n, unsigned flags);
PUBLIC void *pmem_memset(void *to, int byte, size_t n, unsigned flags)
{
	PASS_ON(pmem_memset, to, byte, n, flags);
	PASS_ON_OUTSIDE(to, pmem_memset, to, byte, n, flags);
	return fill(to, byte, n, flags, FRAME);
}

/* ---- libpmem2 hands out function pointers ---- */

struct pmem2_map;

static void persist2(const void *p, size_t n)
{
	event_flush(p, n, PERDURE_CLWB, FRAME);
	event_fence(PERDURE_SFENCE, FRAME);
}

static void flush2(const void *p, size_t n)
{
	event_flush(p, n, PERDURE_CLWB, FRAME);
}

static void drain2(void)
{
	event_fence(PERDURE_SFENCE, FRAME);
}

static void *copy2(void *to, const void *from, size_t n, unsigned flags)
{
	return copy(to, from, n, flags, FRAME);
}

static void *fill2(void *to, int byte, size_t n, unsigned flags)
{
	return fill(to, byte, n, flags, FRAME);
}

void *pmem2_map_get_address(struct pmem2_map *map);

/* Ours for maps in PM if the library is prebuilt, otherwise the library's. */
#define GIVES(name, function)                                                                      \
	PUBLIC void *name(struct pmem2_map *map);                                                  \
	PUBLIC void *name(struct pmem2_map *map)                                                   \
	{                                                                                          \
		PASS_ON(name, map);                                                                \
		PASS_ON_OUTSIDE(REAL(pmem2_map_get_address)(map), name, map);                      \
		return (void *)function;                                                           \
	}                                                                                          \
	struct ignore_semicolon

GIVES(pmem2_get_persist_fn, persist2);
GIVES(pmem2_get_flush_fn, flush2);
GIVES(pmem2_get_drain_fn, drain2);
GIVES(pmem2_get_memcpy_fn, copy2);
GIVES(pmem2_get_memmove_fn, copy2);
GIVES(pmem2_get_memset_fn, fill2);
