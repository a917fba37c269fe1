/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perdure-cc --symbolic: beside each value the number of its expression, as symbolic/abi.h has it.
 * Before the hooks for PM, which then see the addresses that were decided on.
 */
#ifndef COMPILE_SYMBOLIC_H
#define COMPILE_SYMBOLIC_H

#include "compile/instrument.h"
#include "symbolic/abi.h"

/* Instruments all functions of the module. */
void symbolic_instrument(struct instrumenter *in);

/* ---- symbolic_helpers.c: the inline tests ---- */

/* The number of an expression; `flags` and values as the hook of this name takes them. */
LLVMValueRef symbolic_binary(struct instrumenter *in, enum symbolic_op op, unsigned width,
			     LLVMValueRef s, LLVMValueRef a, LLVMValueRef t, LLVMValueRef b);
LLVMValueRef symbolic_cast(struct instrumenter *in, enum symbolic_op op, unsigned from, unsigned to,
			   LLVMValueRef s);
LLVMValueRef symbolic_select(struct instrumenter *in, unsigned width, LLVMValueRef s,
			     LLVMValueRef condition, LLVMValueRef t, LLVMValueRef a, LLVMValueRef u,
			     LLVMValueRef b);
LLVMValueRef symbolic_load(struct instrumenter *in, LLVMValueRef s, LLVMValueRef pointer,
			   unsigned size);
/* The value that is to be stored. */
LLVMValueRef symbolic_store(struct instrumenter *in, LLVMValueRef s, LLVMValueRef pointer,
			    unsigned size, LLVMValueRef t, LLVMValueRef value);
/* The value itself, if there is no expression; otherwise what the hook says: (s, argument). */
LLVMValueRef symbolic_resolve(struct instrumenter *in, const char *hook, LLVMValueRef s,
			      LLVMValueRef value, LLVMValueRef argument);
LLVMValueRef symbolic_branch(struct instrumenter *in, LLVMValueRef s, LLVMValueRef condition,
			     uint64_t site);
LLVMValueRef symbolic_switch(struct instrumenter *in, LLVMValueRef s, LLVMValueRef value,
			     LLVMValueRef cases, unsigned count, uint64_t site);
/* Calls the hook (p, q, n) if there may be symbolic bytes at one of these. */
void symbolic_if_touched(struct instrumenter *in, const char *hook, LLVMValueRef p, LLVMValueRef q,
			 LLVMValueRef n);
/* Tells a callee about its arguments. */
void symbolic_pass(struct instrumenter *in, LLVMValueRef callee, LLVMValueRef *s, unsigned count);
/* At the start of a function: what it was told. */
void symbolic_take(struct instrumenter *in, LLVMValueRef function, LLVMValueRef *s, unsigned count);
/* The same for one like printf, of all of them: an array. */
LLVMValueRef symbolic_take_variable(struct instrumenter *in, LLVMValueRef function);
/* Has anybody its address? To be asked before calls tell callees about arguments. */
bool symbolic_is_callback(LLVMValueRef function);
/* One of the values that a function returns: a field of a structure, or 0. What it is. */
LLVMValueRef symbolic_return(struct instrumenter *in, LLVMValueRef function, unsigned leaf,
			     LLVMValueRef s, LLVMValueRef value);
LLVMValueRef symbolic_result(struct instrumenter *in, LLVMValueRef callee, unsigned leaf);
/* A plain call of a hook that returns the number of an expression, or nothing. */
LLVMValueRef symbolic_call(struct instrumenter *in, const char *hook, LLVMTypeRef result,
			   LLVMValueRef *arguments, unsigned count);

LLVMValueRef symbolic_word(struct instrumenter *in, LLVMValueRef value);
LLVMValueRef symbolic_unword(struct instrumenter *in, LLVMValueRef word, LLVMTypeRef type);

#endif
