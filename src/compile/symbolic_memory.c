/* SPDX-License-Identifier: BSD-3-Clause */
#include "compile/symbolic.h"
#include "compile/symbolic_values.h"

/* ---- addresses ---- */

static LLVMValueRef add_scaled(struct instrumenter *in, const struct values *values,
			       LLVMValueRef sum, LLVMValueRef *sum_word, LLVMValueRef index,
			       uint64_t scale)
{
	LLVMValueRef shadow = values_shadow(in, values, index);
	unsigned width = values_width(LLVMTypeOf(index));
	LLVMValueRef wide = index, factor = LLVMConstInt(in->i64, scale, false), result;

	if (width < 64)
		wide = LLVMBuildSExt(in->builder, index, in->i64, "");
	if (LLVMIsNull(shadow) && LLVMIsNull(sum)) {
		*sum_word = LLVMBuildAdd(in->builder, *sum_word,
					 LLVMBuildMul(in->builder, wide, factor, ""), "");
		return sum;
	}
	if (width != 64)
		shadow = symbolic_cast(in, width < 64 ? SYMBOLIC_SEXT : SYMBOLIC_TRUNC, width, 64,
				       shadow);
	shadow = symbolic_binary(in, SYMBOLIC_MUL, 64, shadow, wide, values_none(in), factor);
	wide = LLVMBuildMul(in->builder, wide, factor, "");
	result = symbolic_binary(in, SYMBOLIC_ADD, 64, sum, *sum_word, shadow, wide);
	*sum_word = LLVMBuildAdd(in->builder, *sum_word, wide, "");
	return result;
}

static bool any_symbolic(struct instrumenter *in, const struct values *values, LLVMValueRef i)
{
	for (int n = 0; n < LLVMGetNumOperands(i); n++)
		if (!LLVMIsNull(values_shadow(in, values, LLVMGetOperand(i, n))))
			return true;
	return false;
}

void symbolic_on_gep(struct instrumenter *in, struct values *values, LLVMValueRef gep)
{
	LLVMTypeRef type = LLVMGetGEPSourceElementType(gep);
	LLVMValueRef base = LLVMGetOperand(gep, 0), sum, sum_word;

	if (!values_is_scalar(LLVMTypeOf(gep)) || !values_is_scalar(LLVMTypeOf(base))) {
		values_fix_all(in, values, gep);
		return;
	}
	if (!any_symbolic(in, values, gep))
		return;
	instrument_before(in, gep);
	sum = values_shadow(in, values, base);
	sum_word = symbolic_word(in, base);
	for (int i = 1; i < LLVMGetNumOperands(gep); i++) {
		LLVMValueRef index = LLVMGetOperand(gep, i);

		if (i > 1 && LLVMGetTypeKind(type) == LLVMStructTypeKind) {
			unsigned number = (unsigned)LLVMConstIntGetZExtValue(index);

			sum = add_scaled(in, values, sum, &sum_word,
					 LLVMConstInt(in->i64, 1, false),
					 LLVMOffsetOfElement(in->layout, type, number));
			type = LLVMStructGetTypeAtIndex(type, number);
			continue;
		}
		if (i > 1)
			type = LLVMGetElementType(type);
		sum = add_scaled(in, values, sum, &sum_word, index,
				 LLVMABISizeOfType(in->layout, type));
	}
	values_put(values, gep, 0, sum);
}

/* ---- memory ---- */

static unsigned size_of(struct instrumenter *in, LLVMTypeRef type)
{
	return (unsigned)LLVMStoreSizeOfType(in->layout, type);
}

static LLVMValueRef field_at(struct instrumenter *in, LLVMValueRef pointer, LLVMTypeRef type,
			     unsigned leaf)
{
	LLVMValueRef offset =
		LLVMConstInt(in->i64, LLVMOffsetOfElement(in->layout, type, leaf), false);

	return LLVMBuildGEP2(in->builder, in->i8, pointer, &offset, 1, "");
}

/* As structures are loaded that will be passed or returned in registers: field by field. */
static void load_structure(struct instrumenter *in, struct values *values, LLVMValueRef load)
{
	LLVMTypeRef type = LLVMTypeOf(load);

	values_settle(in, values, load, 0);
	instrument_before(in, load);
	for (unsigned leaf = 0; leaf < values_leaves(type); leaf++) {
		LLVMTypeRef field = values_leaf_type(type, leaf);
		LLVMValueRef at = field_at(in, LLVMGetOperand(load, 0), type, leaf), result;
		unsigned size = size_of(in, field);

		if (!values_is_scalar(field)) {
			at = symbolic_word(in, at);
			symbolic_if_touched(in, "__perdure_sym_fix_memory", at, at,
					    LLVMConstInt(in->i64, size, false));
			continue;
		}
		result = symbolic_load(in, values_none(in), at, size);
		if (values_width(field) != 8 * size)
			result = symbolic_cast(in, SYMBOLIC_TRUNC, 8 * size, values_width(field),
					       result);
		values_put(values, load, leaf, result);
	}
}

/* The address is decided already. */
static void store_structure(struct instrumenter *in, struct values *values, LLVMValueRef store)
{
	LLVMValueRef whole = LLVMGetOperand(store, 0), pointer = LLVMGetOperand(store, 1);
	LLVMValueRef value = whole;
	LLVMTypeRef type = LLVMTypeOf(value);

	for (unsigned leaf = 0; leaf < values_leaves(type); leaf++) {
		LLVMTypeRef field = values_leaf_type(type, leaf);
		LLVMValueRef at = field_at(in, pointer, type, leaf), part, stored;
		unsigned size = size_of(in, field);

		if (!values_is_scalar(field)) {
			at = symbolic_word(in, at);
			symbolic_if_touched(in, "__perdure_sym_clear", at, at,
					    LLVMConstInt(in->i64, size, false));
			continue;
		}
		part = LLVMBuildExtractValue(in->builder, value, leaf, "");
		stored = symbolic_store(in, values_none(in), at, size,
					values_leaf(in, values, whole, leaf),
					symbolic_word(in, part));
		value = LLVMBuildInsertValue(in->builder, value, symbolic_unword(in, stored, field),
					     leaf, "");
	}
	LLVMSetOperand(store, 0, value);
}

/* A variable that is only loaded and stored here cannot hold anything symbolic by other means. */
void symbolic_on_load(struct instrumenter *in, struct values *values, LLVMValueRef load)
{
	LLVMValueRef pointer = LLVMGetOperand(load, 0), shadow, result, used;
	LLVMTypeRef type = LLVMTypeOf(load);
	unsigned size = size_of(in, type);

	if (LLVMIsAGlobalVariable(pointer) && LLVMIsGlobalConstant(pointer))
		return;
	if (!values_is_scalar(type) && values_leaves(type)) {
		load_structure(in, values, load);
		return;
	}
	if (!values_is_scalar(type)) {
		values_settle(in, values, load, 0);
		instrument_before(in, load);
		used = symbolic_word(in, LLVMGetOperand(load, 0));
		symbolic_if_touched(in, "__perdure_sym_fix_memory", used, used,
				    LLVMConstInt(in->i64, size, false));
		return;
	}
	shadow = values_shadow(in, values, pointer);
	instrument_before(in, load);
	/* It may decide where it is, so the address is asked for behind it. */
	result = symbolic_load(in, shadow, pointer, size);
	if (!LLVMIsNull(shadow))
		values_resolve(in, values, load, 0, "__perdure_sym_now", values_loss(in, 0));
	if (values_width(type) != 8 * size)
		result = symbolic_cast(in, SYMBOLIC_TRUNC, 8 * size, values_width(type), result);
	values_put(values, load, 0, result);
}

void symbolic_on_store(struct instrumenter *in, struct values *values, LLVMValueRef store)
{
	LLVMValueRef value = LLVMGetOperand(store, 0), pointer = LLVMGetOperand(store, 1);
	LLVMTypeRef type = LLVMTypeOf(value);
	unsigned size = size_of(in, type);
	LLVMValueRef shadow = values_shadow(in, values, pointer), stored;

	if (!LLVMIsNull(shadow)) {
		instrument_before(in, store);
		/* In memory that is not PM it may be any of several; elsewhere it is decided. */
		stored = symbolic_resolve(in, "__perdure_sym_target", shadow, pointer,
					  LLVMConstInt(in->i64, size, false));
		LLVMSetOperand(store, 1, stored);
		pointer = stored;
	}
	instrument_before(in, store);
	if (!values_is_scalar(type) && values_leaves(type)) {
		store_structure(in, values, store);
		return;
	}
	if (!values_is_scalar(type)) {
		LLVMValueRef at = symbolic_word(in, pointer);

		symbolic_if_touched(in, "__perdure_sym_clear", at, at,
				    LLVMConstInt(in->i64, size, false));
		return;
	}
	stored = symbolic_store(in, shadow, pointer, size, values_shadow(in, values, value),
				symbolic_word(in, value));
	if (!LLVMIsNull(values_shadow(in, values, value)))
		LLVMSetOperand(store, 0, symbolic_unword(in, stored, type));
}

/* Locked instructions: everything is fixed. */
void symbolic_on_atomic(struct instrumenter *in, struct values *values, LLVMValueRef i)
{
	LLVMTypeRef type = LLVMTypeOf(LLVMGetOperand(i, 1));
	LLVMValueRef at;

	values_fix_all(in, values, i);
	instrument_before(in, i);
	at = symbolic_word(in, LLVMGetOperand(i, 0));
	symbolic_if_touched(in, "__perdure_sym_fix_memory", at, at,
			    LLVMConstInt(in->i64, size_of(in, type), false));
}
