/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Library models at work. hooks are put on functions (library_hooks.c); a hooked call goes through
 * library_call.S to library_call.c, which tells the effects as events.
 */
#ifndef RUNTIME_LIBRARY_H
#define RUNTIME_LIBRARY_H

#include "library/library.h"
#include "runtime/runtime.h"

/* One hooked function of one object. */
struct library_hook {
	const struct library_function *function;
	void *real;
	uintptr_t low,
		high;      /* the object that defines it; if prebuilt, its own calls are its own */
	bool patched;      /* … because it was patched when it was loaded */
	bool instrumented; /* its code tells loads, stores, flushes and fences itself */
	bool fence_only;   /* nothing to do unless this thread has something pending */
};

enum { LIBRARY_WAITING = 2 };

/* As library_call.S lays it out. */
struct library_call {
	uint64_t word[LIBRARY_REGISTERS];
	uint64_t vector_count; /* rax: for functions with a variable number of arguments */
	uint64_t stack_words;
	unsigned char vector[8][16];
	uint64_t result[2];
	unsigned char vector_result[2][16];
	const struct library_hook *hook;
	const struct frame *frame;
	uint64_t next; /* effect */
	uint32_t passive;
	uint32_t logged;  /* events in the log of a check at the call */
	uint64_t started; /* the thread's event number at the call */
	uint64_t waiting; /* effects that wait for the result, with their values */
	struct library_waiting {
		uint64_t effect, value[3];
	} wait[LIBRARY_WAITING];
};
_Static_assert(offsetof(struct library_call, result) == 192 && sizeof(struct library_call) == 352,
	       "library_call.S knows the layout");

/* Puts hooks on all functions of objects that are new since the last time. */
HIDDEN void library_hooks_update(void);
/* Objects went away: what was known of them is void. */
HIDDEN void library_hooks_unloaded(void);
/* What stands in front of this function, as the model of `function` says. */
HIDDEN void *library_hooks_wrap(const struct library_function *function, void *real);
/* The function behind a hook's address; the address itself if it is none. */
HIDDEN const void *library_hooks_behind(const void *address);
/* Where a function of the models is, by index; null if nowhere. */
HIDDEN void *library_hooks_address(uint32_t index);
HIDDEN const struct library_hook *library_hook(uint32_t index);

/* library_call.S */
HIDDEN void library_call_entry(void);
HIDDEN void library_call_end(void);

/* Is this event inside a function of a library that has transactions? */
HIDDEN bool library_is_inside(const struct frame *frame);
/* A longjmp leaves the library's function: its transaction is aborted. */
HIDDEN void library_jump(const struct frame *frame);

#endif
