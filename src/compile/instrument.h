/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The instrumenter: puts hooks (perdure/event.h) into one LLVM module, before any optimisation,
 * so that every access of the source is seen and none is invented.
 *
 * Accesses to the stack and to global variables are left alone: they are never PM. Each other
 * access gets an inline test of its address; the runtime is called only for PM.
 */
#ifndef COMPILE_INSTRUMENT_H
#define COMPILE_INSTRUMENT_H

#include <llvm-c/Core.h>
#include <llvm-c/Target.h>
#include <stdbool.h>
#include <stdint.h>

#include "perdure/event.h"

/*
 * Instruments the module and runs the passes that make the tests cheap; also for symbolic execution
 * if that is wanted. Returns false with a message on standard error if LLVM rejects the result.
 */
bool instrument_module(LLVMModuleRef module, bool optimise, bool symbolic);

/* ---- for the parts of the instrumenter ---- */

struct instrumenter {
	LLVMModuleRef module;
	LLVMContextRef context;
	LLVMBuilderRef builder;
	LLVMTargetDataRef layout;
	LLVMTypeRef void_type, pointer, i1, i8, i32, i64;
	LLVMValueRef inline_state; /* __perdure_inline */
	LLVMValueRef function;     /* the one being instrumented */
	bool is_callback;          /* it may be called by code that was not built with --symbolic */
	bool outlined;             /* it is so large that tests are not inlined */
	uint32_t chain;            /* the first one of this function, see event.h */
	struct link {
		uint32_t chain, stores;
	} link; /* where in which chain the instruction is */
	unsigned tbaa_kind, nontemporal_kind;
};

/* An access: `base` decides whether it is PM (see access_base), `pointer` is where it goes. */
struct access {
	LLVMValueRef instruction, pointer, base;
	LLVMValueRef size; /* i64 */
	uint32_t flags;    /* enum perdure_access_flag, with the order shifted in */
};

/* Instructions as they are before anything is added. Free the list. */
struct instructions {
	LLVMValueRef *list;
	size_t count, room;
};
void instrument_collect(struct instructions *instructions, LLVMBasicBlockRef block);

/* Places the builder before an instruction, with a debug location that is always valid. */
void instrument_before(struct instrumenter *in, LLVMValueRef instruction);
/* The same after an instruction that is no terminator. */
void instrument_after(struct instrumenter *in, LLVMValueRef instruction);

/* A descriptor with where it is in its chain: 64 bits. */
LLVMValueRef instrument_chained(struct instrumenter *in, uint32_t descriptor);

/* ---- access.c ---- */

/*
 * The pointer that decides whether an access is PM: what remains without the arithmetic that
 * cannot leave the object. In a loop over an array it does not change, so that the test can be
 * hoisted and the loop be split into one for PM and one without hooks.
 */
LLVMValueRef access_base(LLVMValueRef pointer);
/* Stack, global or thread-local variable, null: no hook needed. */
bool access_is_ordinary(LLVMValueRef base);
bool access_is_stack(LLVMValueRef base);

LLVMValueRef access_size(struct instrumenter *in, LLVMTypeRef type);

/* ---- place.c ---- */

/* A constant that says which structure the pointer leads into, as in event.h; null pointer if
 * that is not known. */
LLVMValueRef place_of(struct instrumenter *in, LLVMValueRef instruction, LLVMValueRef pointer);
/* Before anything else: notes at instructions what the variables they use were declared as. */
void place_mark(LLVMModuleRef module);

/* ---- helpers.c: the inline tests, as small functions that are inlined right away ---- */

void helper_load(struct instrumenter *in, const struct access *access);
/* Replaces a store of 1, 2, 4 or 8 bytes and erases it. */
void helper_store(struct instrumenter *in, const struct access *access, LLVMValueRef value);
/* Surrounds an instruction that writes; `done` is an i1 or null for always. */
void helper_write_begin(struct instrumenter *in, const struct access *access);
void helper_write_end(struct instrumenter *in, const struct access *access, LLVMValueRef done);
/*
 * Vector lanes under a mask (an i64 with one bit a lane), or a range of unknown size as one lane.
 * Told before the instruction if flags say PERDURE_READ, after it otherwise.
 */
void helper_lanes(struct instrumenter *in, const struct access *access, LLVMValueRef element,
		  LLVMValueRef mask);
/* In place of a flush: the hook for PM, the instruction otherwise. */
void helper_flush(struct instrumenter *in, LLVMValueRef pointer, enum perdure_flush kind);
void helper_fence(struct instrumenter *in, enum perdure_fence kind);
/* A locked instruction on ordinary memory: a fence if this thread has anything to complete. */
void helper_locked(struct instrumenter *in);
/* In place of llvm.memcpy, llvm.memmove, llvm.memset of large or unknown size; erases it. */
void helper_bulk(struct instrumenter *in, LLVMValueRef call, const char *runtime_function);
/* Other threads could see this; a hook if they are fibers. `pointer` may be null. */
void helper_visible(struct instrumenter *in, LLVMValueRef pointer, uint32_t descriptor);
void helper_unknown(struct instrumenter *in, const char *text, LLVMValueRef pointer);
/* Sets the flag that a store outside the stack happened. */
void helper_stored(struct instrumenter *in);

/* ---- intrinsics.c, assembly.c, stored.c ---- */

void instrument_intrinsic(struct instrumenter *in, LLVMValueRef call);
void instrument_assembly(struct instrumenter *in, LLVMValueRef call);
/* Sets the flag for redundant-fence where stores outside the stack are, outside loops if it can. */
void instrument_stored(struct instrumenter *in, LLVMValueRef function);

/* "file:line: text", for what is listed under limits. Free it. */
char *instrument_describe(struct instrumenter *in, LLVMValueRef instruction, const char *text);

#endif
