/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Symbolic execution inside the target, which was built with `perdure-cc --symbolic`.
 *
 *   expression.c  values as expressions over the inputs; derived.c those that are made of others
 *   path.c        what a path has assumed, and whether it may go another way
 *   solver.c      asks a solver, in a process of its own, what cannot be found out here
 *   memory.c      which bytes of memory are symbolic
 *   hooks.c       what compiled code calls
 *   strings.c     functions of libc that keep symbolic data
 *   inputs.c      where symbolic bytes come from
 *   network.h     a client for servers
 *   telling.c     what a path has done, for plug-ins
 *   descriptors.c what it has open, when it forks
 *   reached.c     what a path has done to PM
 *   states.c      forking at branches, and which state goes on
 */
#ifndef SYMBOLIC_SYMBOLIC_H
#define SYMBOLIC_SYMBOLIC_H

#include "runtime/runtime.h"
#include "symbolic/path.h"

/* This process is a path of an exploration. */
extern HIDDEN bool symbolic_on;
/* What lies below this on the stack is not the program's. Each entry from it sets it. */
extern HIDDEN const void *symbolic_frame;
extern __thread struct symbolic_call __perdure_symbolic_call
	__attribute__((tls_model("initial-exec"), visibility("default")));

static inline struct explore *symbolic_shared(void)
{
	return runtime_session->explore;
}

HIDDEN void symbolic_count(uint64_t *counter);
HIDDEN void symbolic_lose(enum symbolic_loss why);

/* ---- memory.c ---- */

/* The bytes there as one expression, the lowest address lowest; 0 if none is symbolic. */
HIDDEN uint32_t memory_load(const void *p, unsigned size);
/* 0: they are what they are. */
HIDDEN void memory_store(const void *p, unsigned size, uint32_t value);
HIDDEN void memory_clear(const void *p, size_t size);
/* Before the bytes themselves are copied; they may overlap. */
HIDDEN void memory_copy(void *to, const void *from, size_t size);
HIDDEN bool memory_is_mapped(uint64_t address);
HIDDEN bool memory_is_symbolic(const void *p, size_t size);
/* The bytes will stay as they are under the model. */
HIDDEN void memory_fix(const void *p, size_t size, enum symbolic_loss why);
/* … up to where there are no more, as far as can be seen. */
HIDDEN void memory_fix_from(const void *p, enum symbolic_loss why);
/* The model is about to change; and it has changed. */
HIDDEN void memory_before_change(void);
HIDDEN void memory_after_change(void);

/* ---- solver.c ---- */

HIDDEN void solver_start(void);

/* ---- hooks.c ---- */

/* Goes both ways if it can; true if the condition holds on the way that this process takes. */
HIDDEN bool symbolic_decide(uint32_t condition, uint64_t site);
/* Fixes it; what it is now. */
HIDDEN uint64_t symbolic_fix(uint32_t e, enum symbolic_loss why);
/* Goes on with each value that it can have, if these are not too many. */
HIDDEN uint64_t symbolic_each(uint32_t e, enum symbolic_loss why, uint64_t site);
/* One of so many ways of which none depends on the inputs: each is another path. */
HIDDEN uint32_t symbolic_choose(uint32_t ways);
/*
 * A function that stands in for one of libc asks for its arguments before anything else: those that
 * are symbolic are decided. `frame` is its own.
 */
HIDDEN void symbolic_take(const void *function, const void *frame, uint64_t *value, unsigned count);
/* The result of a function that stands in for one of libc. */
HIDDEN void symbolic_result(const void *function, uint32_t e);

/* ---- inputs.c ---- */

/* The values are those of a state that was kept, or of the beginning: null. */
HIDDEN void inputs_start(int *argc, char ***argv, const struct explore_kept *kept);
/* An input that is known, for crash injection: what the command cannot give. */
HIDDEN void inputs_give(int *argc, char ***argv);
/* Copies them with what they are, for another process. */
HIDDEN void inputs_keep(struct explore_kept *kept);
/* A file is about to be written, or cut to this size: if it is symbolic, it is what it is from now
 * on. */
HIDDEN void inputs_changed(int fd, uint64_t size);
/* Some of a file was mapped: if that is symbolic, so is the memory. */
HIDDEN void inputs_mapped(int fd, void *start, uint64_t offset, uint64_t size);

/* The number of the input that the next choice of symbolic_choose is; false if there are no more.
 */
HIDDEN bool inputs_choice(uint32_t *number);
/* Packets that a client sends: how many, how long, and some of one. */
HIDDEN uint32_t inputs_packets(void);
HIDDEN uint32_t inputs_packet_size(uint32_t packet);
HIDDEN void inputs_packet_read(uint32_t packet, uint32_t offset, void *bytes, uint32_t size);
/* Where the program listens. */
HIDDEN void inputs_name_packets(const char *address);

/* ---- telling.c ---- */

HIDDEN void telling_note(const struct perdure_event *event);
/* The path is over; its input was kept as this, index + 1. */
HIDDEN void telling_end(uint32_t input, bool confirms);

/* ---- reached.c ---- */

/* The instruction before this address has changed PM, or persisted it. */
HIDDEN void reached_place(uintptr_t pc);
/* … and what it was about: paths that do the same are one for crash injection. */
HIDDEN void reached_memory(const void *p, uintptr_t pc);
/* At its end: has no path before this one done the same? */
HIDDEN bool reached_something_new(void);

/* ---- states.c ---- */

/* In the first process: becomes the root, and returns in each path, with its arguments. */
HIDDEN void states_start(int *argc, char ***argv);
/* True in the new state, whose model is another one then; `way` is the one that it will take. */
HIDDEN bool states_fork(uint64_t site, unsigned way, const struct path_change *change);
/* A decision is to be taken: has the one that is run again taken it already? */
HIDDEN bool states_is_replayed(void);
HIDDEN void states_took(uint64_t site, unsigned way);
/* The path ends here, before its time, and does not count. */
HIDDEN void states_silence(void) __attribute__((noreturn));
HIDDEN void states_end(void);
/* Keeps what this path would be given with another model; index + 1, or 0. */
HIDDEN uint32_t states_keep_witness(const struct path_change *change);
/* … by a signal, with this call stack. */
HIDDEN void states_crashed(uint32_t signal, uint32_t stack);

#endif
