/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Store buffers, as x86-TSO has them: under schedules that may switch anywhere, stores, flushes and
 * sfences of a fiber wait until they are drained, in order; others do not see them before. The
 * fiber itself has its stores in memory while it runs; when it gives way, those that still wait are
 * taken back, and put there again when it goes on.
 *
 * What is not hooked (a plain store to ordinary memory, a function of a library) cannot wait. So
 * everything before it must not wait any longer than until others run. What code does between two
 * hooks is known only within a chain of straight-line code (perdure/event.h); a hook that is not in
 * the chain of the one before it drains.
 */
#ifndef FIBERS_BUFFER_H
#define FIBERS_BUFFER_H

#include "fibers/fibers.h"

/* Is this fiber's buffer in use? Otherwise everything is drained as it happens. */
extern HIDDEN bool buffers_on;

/* A hook says where in which chain it is; drains if it cannot know what happened before. */
HIDDEN void buffer_continue(uint64_t descriptor);

/* Instead of doing it: what the hook has to tell is told when the operation is drained. */
HIDDEN void buffer_store(void *p, uint64_t value, uint32_t descriptor, const char *place,
			 uint32_t stack);
HIDDEN void buffer_flush(const void *p, uint32_t kind, uint32_t stack);
HIDDEN void buffer_sfence(bool idle, uint32_t stack);
/* The program itself stores there next; ordinary memory, or PM that is not followed. */
HIDDEN void buffer_ordinary_store(void *p, uint32_t size, uint32_t descriptor);

HIDDEN void buffer_drain(void);
/* How many operations wait. */
HIDDEN unsigned buffer_waiting(void);
/* All but the last `kept` are drained, and these leave memory until buffer_enter. */
HIDDEN void buffer_leave(unsigned kept);
HIDDEN void buffer_enter(void);

#endif
