/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of the instrumentation for symbolic values; see symbolic.h. */
#ifndef COMPILE_SYMBOLIC_VALUES_H
#define COMPILE_SYMBOLIC_VALUES_H

#include "compile/instrument.h"
#include "symbolic/abi.h"

/* Which values of a function have an expression: a hash table. */
struct values_pair {
	LLVMValueRef value, shadow;
	unsigned leaf; /* of a structure in registers: which field */
};

struct values {
	struct values_pair *slot;
	size_t size, used;
	uint64_t site;         /* of the next branch */
	LLVMValueRef variable; /* where arguments of a function like printf are noted; or null */
};

void values_put(struct values *values, LLVMValueRef value, unsigned leaf, LLVMValueRef shadow);
/* The number of its expression; the constant 0 if it has none. */
LLVMValueRef values_shadow(struct instrumenter *in, const struct values *values,
			   LLVMValueRef value);
LLVMValueRef values_leaf(struct instrumenter *in, const struct values *values, LLVMValueRef value,
			 unsigned leaf);
LLVMValueRef values_none(struct instrumenter *in);
LLVMValueRef values_loss(struct instrumenter *in, enum symbolic_loss why);

/* An integer of at most 64 bits, or a pointer. */
bool values_is_scalar(LLVMTypeRef type);
unsigned values_width(LLVMTypeRef type);
/* Of a structure of a few such values, and floating point, the number of fields; of a scalar 1;
 * otherwise 0. */
unsigned values_leaves(LLVMTypeRef type);
LLVMTypeRef values_leaf_type(LLVMTypeRef type, unsigned leaf);

/* An operand that is needed as it is: `hook` as in symbolic_resolve. */
void values_resolve(struct instrumenter *in, const struct values *values, LLVMValueRef instruction,
		    unsigned i, const char *hook, LLVMValueRef argument);
/* It stays what it is; or, of an address, goes on with each that it can be. */
void values_fix(struct instrumenter *in, const struct values *values, LLVMValueRef instruction,
		unsigned i);
void values_settle(struct instrumenter *in, const struct values *values, LLVMValueRef instruction,
		   unsigned i);
void values_fix_all(struct instrumenter *in, const struct values *values, LLVMValueRef instruction);

LLVMValueRef values_binary(struct instrumenter *in, const struct values *values,
			   enum symbolic_op op, unsigned width, LLVMValueRef a, LLVMValueRef b);

/* ---- symbolic_memory.c ---- */

void symbolic_on_gep(struct instrumenter *in, struct values *values, LLVMValueRef gep);
void symbolic_on_load(struct instrumenter *in, struct values *values, LLVMValueRef load);
void symbolic_on_store(struct instrumenter *in, struct values *values, LLVMValueRef store);
void symbolic_on_atomic(struct instrumenter *in, struct values *values, LLVMValueRef i);

/* ---- symbolic_calls.c ---- */

void symbolic_on_call(struct instrumenter *in, struct values *values, LLVMValueRef call);

#endif
