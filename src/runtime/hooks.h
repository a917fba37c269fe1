/* SPDX-License-Identifier: BSD-3-Clause */
/* The C side of the hooks, for hooks.S and for events.c, which speaks for the interposers. */
#ifndef RUNTIME_HOOKS_H
#define RUNTIME_HOOKS_H

#include "runtime/runtime.h"

extern HIDDEN uint8_t runtime_wants_loads;

HIDDEN void hook_load(const void *p, uint64_t descriptor, const struct frame *frame);
HIDDEN void hook_store(void *p, uint64_t value, uint64_t descriptor, const char *place,
		       const struct frame *frame);
HIDDEN void hook_write_begin(void *p, uint64_t size, uint32_t descriptor,
			     const struct frame *frame);
HIDDEN void hook_write_end(void *p, uint64_t size, uint32_t descriptor, uint32_t done,
			   const char *place, const struct frame *frame);
HIDDEN void hook_lanes(void *p, uint64_t element, uint64_t mask, uint32_t flags,
		       const struct frame *frame);
HIDDEN void hook_flush(const void *p, uint64_t descriptor, const struct frame *frame);
HIDDEN void hook_fence(uint64_t descriptor, const struct frame *frame);
/* The instruction between begin and end was left by a jump. */
HIDDEN void hook_abandon_writes(void);
HIDDEN void hook_visible(const void *p, uint64_t descriptor, const struct frame *frame);
/* What the hooks of these do when nothing waits, or not any more. */
HIDDEN void hook_commit_store(void *p, uint64_t value, uint32_t descriptor, const char *place,
			      uint32_t stack);
HIDDEN void hook_commit_flush(const void *p, uint32_t kind, uint32_t stack);
HIDDEN void hook_commit_sfence(bool idle, uint32_t stack);
/* To Valgrind: what its answer needs, … */
enum client_need {
	CLIENT_NOTHING, /* it is the standard one */
	CLIENT_LITTLE,
	CLIENT_STACK,
	CLIENT_ALL, /* vectors, too */
};
HIDDEN enum client_need client_request_needs(const volatile uint64_t *arguments);
/* … and the answer, or the standard one. */
HIDDEN uint64_t client_request(uint64_t standard, const volatile uint64_t *arguments,
			       const struct frame *frame);
HIDDEN void hook_unknown(const char *text, const void *p, const struct frame *frame);

/* Tells the stream, if somebody listens. `place` as in event.h, or null. */
/* To those who listen, at once. */
HIDDEN void tell_now(struct perdure_event *event);
HIDDEN void tell_event(const struct session_thread *thread, enum perdure_event_kind kind,
		       uint32_t detail, const void *p, uint64_t size, uint32_t stack,
		       const char *place);

static inline void tell(const struct session_thread *thread, enum perdure_event_kind kind,
			uint32_t detail, const void *p, uint64_t size, uint32_t stack)
{
	if (__builtin_expect(runtime_session->listening, 0))
		tell_event(thread, kind, detail, p, size, stack, NULL);
}

/* The program's own store. */
static inline void store_value(void *p, uint64_t value, unsigned size)
{
	switch (size) {
	case 1:
		*(volatile uint8_t *)p = value;
		break;
	case 2:
		__builtin_memcpy(p, &(uint16_t){ value }, 2);
		break;
	case 4:
		__builtin_memcpy(p, &(uint32_t){ value }, 4);
		break;
	default:
		__builtin_memcpy(p, &value, 8);
	}
	__asm__ volatile("" ::: "memory");
}

/* A store of any size that has happened or is about to, without the lock around it. */
HIDDEN void event_write(void *p, uint64_t size, uint32_t flags, const struct frame *frame);

#endif
