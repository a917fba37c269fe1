/* SPDX-License-Identifier: BSD-3-Clause */
/* Ways up a stack, for those who need to know where they are. */
#ifndef RUNTIME_WALK_H
#define RUNTIME_WALK_H

#include "runtime/context.h"
#include "runtime/runtime.h"

/* Recursion can make stacks deep: the inner frames are kept, and the last few seen, as a ring. */
struct walk {
	uintptr_t pc[STACKS_DEPTH];
	uint32_t depth;
	bool complete; /* reached main or a thread's start function */
	bool handler;  /* went through a signal handler */
	/* Words that say it is this stack; more than there is room for: not all of them. */
	uint32_t words;
	const uintptr_t *word[STACKS_WORDS_SEEN];
	bool by_rbp;    /* and so does rbp as it was at the start */
	uint32_t calls; /* and calls that hooks have noted */
	const struct thread_call *call[STACKS_CALLS_SEEN];
};

/* Where signal handlers return to: behind it the frame chain misses the interrupted function. */
extern HIDDEN uintptr_t walk_signal_return;

/* One more frame; false if it is the last. */
HIDDEN bool walk_add(struct walk *walk, uintptr_t pc);

/* ---- frames.c ---- */

/* By unwind tables, from this instruction on. Whatever they say is kept for walk_known. */
HIDDEN void walk_by_tables(struct walk *walk, uintptr_t first);
/* By what they have said before, from these registers on; false if something is not known. */
HIDDEN bool walk_known(struct walk *walk, uintptr_t pc, uintptr_t sp, uintptr_t rbp);
/* Where the frame at this instruction has its return address. */
HIDDEN struct stack_place walk_return_place(uintptr_t pc);

#endif
