/* SPDX-License-Identifier: BSD-3-Clause */
#include "compile/symbolic_values.h"

#include <stdlib.h>

#include "compile/symbolic.h"

static size_t values_slot(const struct values *values, LLVMValueRef value, unsigned leaf)
{
	size_t at = ((uintptr_t)value >> 4) * 31 + leaf;

	while (values->slot[at % values->size].value &&
	       (values->slot[at % values->size].value != value ||
		values->slot[at % values->size].leaf != leaf))
		at++;
	return at % values->size;
}

void values_put(struct values *values, LLVMValueRef value, unsigned leaf, LLVMValueRef shadow)
{
	size_t at;

	if (values->used * 2 >= values->size) {
		struct values more = { .size = values->size ? values->size * 2 : 256 };

		more.slot = calloc(more.size, sizeof(*more.slot));
		if (!more.slot)
			abort();
		for (size_t i = 0; i < values->size; i++)
			if (values->slot[i].value)
				more.slot[values_slot(&more, values->slot[i].value,
						      values->slot[i].leaf)] = values->slot[i];
		free(values->slot);
		values->slot = more.slot;
		values->size = more.size;
	}
	at = values_slot(values, value, leaf);
	values->used += !values->slot[at].value;
	values->slot[at] = (struct values_pair){ value, shadow, leaf };
}

bool values_is_scalar(LLVMTypeRef type)
{
	return LLVMGetTypeKind(type) == LLVMPointerTypeKind ||
	       (LLVMGetTypeKind(type) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(type) <= 64);
}

static bool is_float(LLVMTypeRef type)
{
	return LLVMGetTypeKind(type) == LLVMFloatTypeKind ||
	       LLVMGetTypeKind(type) == LLVMDoubleTypeKind;
}

unsigned values_leaves(LLVMTypeRef type)
{
	unsigned count;

	if (values_is_scalar(type))
		return 1;
	count = LLVMGetTypeKind(type) == LLVMStructTypeKind ? LLVMCountStructElementTypes(type) : 0;
	if (count > SYMBOLIC_RESULTS)
		return 0;
	for (unsigned i = 0; i < count; i++) {
		LLVMTypeRef field = LLVMStructGetTypeAtIndex(type, i);

		if (!values_is_scalar(field) && !is_float(field))
			return 0;
	}
	return count;
}

LLVMTypeRef values_leaf_type(LLVMTypeRef type, unsigned leaf)
{
	return values_is_scalar(type) ? type : LLVMStructGetTypeAtIndex(type, leaf);
}

unsigned values_width(LLVMTypeRef type)
{
	return LLVMGetTypeKind(type) == LLVMIntegerTypeKind ? LLVMGetIntTypeWidth(type) : 64;
}

LLVMValueRef values_none(struct instrumenter *in)
{
	return LLVMConstInt(in->i32, 0, false);
}

LLVMValueRef values_leaf(struct instrumenter *in, const struct values *values, LLVMValueRef value,
			 unsigned leaf)
{
	LLVMValueRef shadow =
		values->size ? values->slot[values_slot(values, value, leaf)].shadow : NULL;

	return shadow ? shadow : values_none(in);
}

LLVMValueRef values_shadow(struct instrumenter *in, const struct values *values, LLVMValueRef value)
{
	return values_leaf(in, values, value, 0);
}

LLVMValueRef values_loss(struct instrumenter *in, enum symbolic_loss why)
{
	return LLVMConstInt(in->i64, why, false);
}

/* ---- operands that are needed as they are ---- */

void values_resolve(struct instrumenter *in, const struct values *values, LLVMValueRef instruction,
		    unsigned i, const char *hook, LLVMValueRef argument)
{
	LLVMValueRef operand = LLVMGetOperand(instruction, i), shadow;

	if (!values_is_scalar(LLVMTypeOf(operand)))
		return;
	shadow = values_shadow(in, values, operand);
	if (LLVMIsNull(shadow))
		return;
	instrument_before(in, instruction);
	LLVMSetOperand(instruction, i, symbolic_resolve(in, hook, shadow, operand, argument));
}

void values_fix(struct instrumenter *in, const struct values *values, LLVMValueRef instruction,
		unsigned i)
{
	values_resolve(in, values, instruction, i, "__perdure_sym_fix",
		       values_loss(in, SYMBOLIC_LOST_FLOAT));
}

/* An address: each that it can be. */
void values_settle(struct instrumenter *in, const struct values *values, LLVMValueRef instruction,
		   unsigned i)
{
	values_resolve(in, values, instruction, i, "__perdure_sym_each",
		       values_loss(in, SYMBOLIC_LOST_ADDRESS));
}

void values_fix_all(struct instrumenter *in, const struct values *values, LLVMValueRef instruction)
{
	for (int i = 0; i < LLVMGetNumOperands(instruction); i++) {
		LLVMValueRef operand = LLVMGetOperand(instruction, i);

		if (LLVMGetTypeKind(LLVMTypeOf(operand)) == LLVMPointerTypeKind)
			values_settle(in, values, instruction, i);
		else
			values_fix(in, values, instruction, i);
	}
}

/* ---- two operands ---- */

LLVMValueRef values_binary(struct instrumenter *in, const struct values *values,
			   enum symbolic_op op, unsigned width, LLVMValueRef a, LLVMValueRef b)
{
	return symbolic_binary(in, op, width, values_shadow(in, values, a), symbolic_word(in, a),
			       values_shadow(in, values, b), symbolic_word(in, b));
}
