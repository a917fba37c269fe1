/* SPDX-License-Identifier: BSD-3-Clause */
#include "compile/symbolic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compile/calls.h"

/* ---- which values have an expression ---- */

struct pair {
	LLVMValueRef value, shadow;
	unsigned leaf; /* of an operation that also says whether it fits: 1 */
};

struct values {
	struct pair *slot;
	size_t size, used;
	uint64_t site; /* of the next branch */
};

static size_t slot_of(const struct values *values, LLVMValueRef value, unsigned leaf)
{
	size_t at = ((uintptr_t)value >> 4) * 31 + leaf;

	while (values->slot[at % values->size].value &&
	       (values->slot[at % values->size].value != value ||
		values->slot[at % values->size].leaf != leaf))
		at++;
	return at % values->size;
}

static void put(struct values *values, LLVMValueRef value, unsigned leaf, LLVMValueRef shadow)
{
	size_t at;

	if (values->used * 2 >= values->size) {
		struct values more = { .size = values->size ? values->size * 2 : 256 };

		more.slot = calloc(more.size, sizeof(*more.slot));
		if (!more.slot)
			abort();
		for (size_t i = 0; i < values->size; i++)
			if (values->slot[i].value)
				more.slot[slot_of(&more, values->slot[i].value,
						  values->slot[i].leaf)] = values->slot[i];
		free(values->slot);
		values->slot = more.slot;
		values->size = more.size;
	}
	at = slot_of(values, value, leaf);
	values->used += !values->slot[at].value;
	values->slot[at] = (struct pair){ value, shadow, leaf };
}

static bool is_scalar(LLVMTypeRef type)
{
	return LLVMGetTypeKind(type) == LLVMPointerTypeKind ||
	       (LLVMGetTypeKind(type) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(type) <= 64);
}

static unsigned width_of(LLVMTypeRef type)
{
	return LLVMGetTypeKind(type) == LLVMIntegerTypeKind ? LLVMGetIntTypeWidth(type) : 64;
}

static LLVMValueRef none(struct instrumenter *in)
{
	return LLVMConstInt(in->i32, 0, false);
}

static LLVMValueRef shadow_leaf(struct instrumenter *in, const struct values *values,
				LLVMValueRef value, unsigned leaf)
{
	LLVMValueRef shadow =
		values->size ? values->slot[slot_of(values, value, leaf)].shadow : NULL;

	return shadow ? shadow : none(in);
}

static LLVMValueRef shadow_of(struct instrumenter *in, const struct values *values,
			      LLVMValueRef value)
{
	return shadow_leaf(in, values, value, 0);
}

static LLVMValueRef loss(struct instrumenter *in, enum symbolic_loss why)
{
	return LLVMConstInt(in->i64, why, false);
}

/* ---- operands that are needed as they are ---- */

static void resolve_operand(struct instrumenter *in, const struct values *values,
			    LLVMValueRef instruction, unsigned i, const char *hook,
			    LLVMValueRef argument)
{
	LLVMValueRef operand = LLVMGetOperand(instruction, i), shadow;

	if (!is_scalar(LLVMTypeOf(operand)))
		return;
	shadow = shadow_of(in, values, operand);
	if (LLVMIsNull(shadow))
		return;
	instrument_before(in, instruction);
	LLVMSetOperand(instruction, i, symbolic_resolve(in, hook, shadow, operand, argument));
}

static void fix_operand(struct instrumenter *in, const struct values *values,
			LLVMValueRef instruction, unsigned i)
{
	resolve_operand(in, values, instruction, i, "__perdure_sym_fix",
			loss(in, SYMBOLIC_LOST_FLOAT));
}

/* An address: each that it can be. */
static void settle_operand(struct instrumenter *in, const struct values *values,
			   LLVMValueRef instruction, unsigned i)
{
	resolve_operand(in, values, instruction, i, "__perdure_sym_each",
			loss(in, SYMBOLIC_LOST_ADDRESS));
}

static void fix_operands(struct instrumenter *in, const struct values *values,
			 LLVMValueRef instruction)
{
	for (int i = 0; i < LLVMGetNumOperands(instruction); i++) {
		LLVMValueRef operand = LLVMGetOperand(instruction, i);

		if (LLVMGetTypeKind(LLVMTypeOf(operand)) == LLVMPointerTypeKind)
			settle_operand(in, values, instruction, i);
		else
			fix_operand(in, values, instruction, i);
	}
}

/* ---- arithmetic ---- */

static const uint8_t operations[] = {
	[LLVMAdd] = SYMBOLIC_ADD,   [LLVMSub] = SYMBOLIC_SUB,   [LLVMMul] = SYMBOLIC_MUL,
	[LLVMUDiv] = SYMBOLIC_UDIV, [LLVMSDiv] = SYMBOLIC_SDIV, [LLVMURem] = SYMBOLIC_UREM,
	[LLVMSRem] = SYMBOLIC_SREM, [LLVMShl] = SYMBOLIC_SHL,   [LLVMLShr] = SYMBOLIC_LSHR,
	[LLVMAShr] = SYMBOLIC_ASHR, [LLVMAnd] = SYMBOLIC_AND,   [LLVMOr] = SYMBOLIC_OR,
	[LLVMXor] = SYMBOLIC_XOR,
};

static LLVMValueRef binary(struct instrumenter *in, const struct values *values,
			   enum symbolic_op op, unsigned width, LLVMValueRef a, LLVMValueRef b)
{
	return symbolic_binary(in, op, width, shadow_of(in, values, a), symbolic_word(in, a),
			       shadow_of(in, values, b), symbolic_word(in, b));
}

static void instrument_binary(struct instrumenter *in, struct values *values, LLVMValueRef i)
{
	LLVMOpcode opcode = LLVMGetInstructionOpcode(i);
	LLVMValueRef a = LLVMGetOperand(i, 0), b = LLVMGetOperand(i, 1), result;

	if (!is_scalar(LLVMTypeOf(i))) {
		fix_operands(in, values, i);
		return;
	}
	instrument_before(in, i);
	result = binary(in, values, operations[opcode], width_of(LLVMTypeOf(i)), a, b);
	if (LLVMIsNull(result))
		return;
	put(values, i, 0, result);
	if (opcode != LLVMUDiv && opcode != LLVMSDiv && opcode != LLVMURem && opcode != LLVMSRem)
		return;
	/* The processor does it as well, and must not be given what means nothing. */
	resolve_operand(in, values, i, 0, "__perdure_sym_now", loss(in, 0));
	resolve_operand(in, values, i, 1, "__perdure_sym_divisor", loss(in, 0));
}

static void instrument_compare(struct instrumenter *in, struct values *values, LLVMValueRef i)
{
	static const struct {
		uint8_t op;
		bool swapped;
	} by[] = {
		[LLVMIntEQ] = { SYMBOLIC_EQ, false },   [LLVMIntNE] = { SYMBOLIC_NE, false },
		[LLVMIntUGT] = { SYMBOLIC_ULT, true },  [LLVMIntUGE] = { SYMBOLIC_ULE, true },
		[LLVMIntULT] = { SYMBOLIC_ULT, false }, [LLVMIntULE] = { SYMBOLIC_ULE, false },
		[LLVMIntSGT] = { SYMBOLIC_SLT, true },  [LLVMIntSGE] = { SYMBOLIC_SLE, true },
		[LLVMIntSLT] = { SYMBOLIC_SLT, false }, [LLVMIntSLE] = { SYMBOLIC_SLE, false },
	};
	LLVMIntPredicate predicate = LLVMGetICmpPredicate(i);
	LLVMValueRef a = LLVMGetOperand(i, by[predicate].swapped ? 1 : 0);
	LLVMValueRef b = LLVMGetOperand(i, by[predicate].swapped ? 0 : 1);

	if (!is_scalar(LLVMTypeOf(a))) {
		fix_operands(in, values, i);
		return;
	}
	instrument_before(in, i);
	put(values, i, 0, binary(in, values, by[predicate].op, width_of(LLVMTypeOf(a)), a, b));
}

static void instrument_cast(struct instrumenter *in, struct values *values, LLVMValueRef i)
{
	LLVMValueRef a = LLVMGetOperand(i, 0), shadow = shadow_of(in, values, a);
	unsigned from, to;
	bool wide = LLVMGetInstructionOpcode(i) != LLVMSExt;

	if (!is_scalar(LLVMTypeOf(a)) || !is_scalar(LLVMTypeOf(i))) {
		fix_operands(in, values, i);
		return;
	}
	from = width_of(LLVMTypeOf(a));
	to = width_of(LLVMTypeOf(i));
	instrument_before(in, i);
	if (from != to)
		shadow = symbolic_cast(in,
				       to < from ? SYMBOLIC_TRUNC
				       : wide    ? SYMBOLIC_ZEXT
						 : SYMBOLIC_SEXT,
				       from, to, shadow);
	put(values, i, 0, shadow);
}

static void instrument_select(struct instrumenter *in, struct values *values, LLVMValueRef i)
{
	LLVMValueRef condition = LLVMGetOperand(i, 0), a = LLVMGetOperand(i, 1),
		     b = LLVMGetOperand(i, 2);

	if (!is_scalar(LLVMTypeOf(condition))) {
		fix_operands(in, values, i);
		return;
	}
	instrument_before(in, i);
	if (is_scalar(LLVMTypeOf(i)))
		put(values, i, 0,
		    symbolic_select(in, width_of(LLVMTypeOf(i)), shadow_of(in, values, condition),
				    condition, shadow_of(in, values, a), symbolic_word(in, a),
				    shadow_of(in, values, b), symbolic_word(in, b)));
	else
		LLVMSetOperand(i, 0,
			       symbolic_branch(in, shadow_of(in, values, condition), condition,
					       values->site));
}

/* ---- addresses ---- */

static LLVMValueRef add_scaled(struct instrumenter *in, const struct values *values,
			       LLVMValueRef sum, LLVMValueRef *sum_word, LLVMValueRef index,
			       uint64_t scale)
{
	LLVMValueRef shadow = shadow_of(in, values, index);
	unsigned width = width_of(LLVMTypeOf(index));
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
	shadow = symbolic_binary(in, SYMBOLIC_MUL, 64, shadow, wide, none(in), factor);
	wide = LLVMBuildMul(in->builder, wide, factor, "");
	result = symbolic_binary(in, SYMBOLIC_ADD, 64, sum, *sum_word, shadow, wide);
	*sum_word = LLVMBuildAdd(in->builder, *sum_word, wide, "");
	return result;
}

static bool any_symbolic(struct instrumenter *in, const struct values *values, LLVMValueRef i)
{
	for (int n = 0; n < LLVMGetNumOperands(i); n++)
		if (!LLVMIsNull(shadow_of(in, values, LLVMGetOperand(i, n))))
			return true;
	return false;
}

static void instrument_gep(struct instrumenter *in, struct values *values, LLVMValueRef gep)
{
	LLVMTypeRef type = LLVMGetGEPSourceElementType(gep);
	LLVMValueRef base = LLVMGetOperand(gep, 0), sum, sum_word;

	if (!is_scalar(LLVMTypeOf(gep)) || !is_scalar(LLVMTypeOf(base))) {
		fix_operands(in, values, gep);
		return;
	}
	if (!any_symbolic(in, values, gep))
		return;
	instrument_before(in, gep);
	sum = shadow_of(in, values, base);
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
	put(values, gep, 0, sum);
}

/* ---- memory ---- */

static unsigned size_of(struct instrumenter *in, LLVMTypeRef type)
{
	return (unsigned)LLVMStoreSizeOfType(in->layout, type);
}

/* A variable that is only loaded and stored here cannot hold anything symbolic by other means. */
static void instrument_load(struct instrumenter *in, struct values *values, LLVMValueRef load)
{
	LLVMValueRef pointer = LLVMGetOperand(load, 0), shadow, result, used = pointer;
	LLVMTypeRef type = LLVMTypeOf(load);
	unsigned size = size_of(in, type);

	if (LLVMIsAGlobalVariable(pointer) && LLVMIsGlobalConstant(pointer))
		return;
	if (!is_scalar(type)) {
		settle_operand(in, values, load, 0);
		instrument_before(in, load);
		used = symbolic_word(in, LLVMGetOperand(load, 0));
		symbolic_if_touched(in, "__perdure_sym_fix_memory", used, used,
				    LLVMConstInt(in->i64, size, false));
		return;
	}
	shadow = shadow_of(in, values, pointer);
	if (!LLVMIsNull(shadow)) {
		resolve_operand(in, values, load, 0, "__perdure_sym_now", loss(in, 0));
		used = LLVMGetOperand(load, 0);
	}
	instrument_before(in, load);
	result = symbolic_load(in, shadow, pointer, used, size);
	if (width_of(type) != 8 * size)
		result = symbolic_cast(in, SYMBOLIC_TRUNC, 8 * size, width_of(type), result);
	put(values, load, 0, result);
}

static void instrument_store(struct instrumenter *in, struct values *values, LLVMValueRef store)
{
	LLVMValueRef value = LLVMGetOperand(store, 0), pointer = LLVMGetOperand(store, 1);
	LLVMTypeRef type = LLVMTypeOf(value);
	unsigned size = size_of(in, type);
	LLVMValueRef shadow = shadow_of(in, values, pointer), stored;

	if (!LLVMIsNull(shadow)) {
		instrument_before(in, store);
		/* In memory that is not PM it may be any of several; elsewhere it is decided. */
		stored = symbolic_resolve(in, "__perdure_sym_target", shadow, pointer,
					  LLVMConstInt(in->i64, size, false));
		LLVMSetOperand(store, 1, stored);
		pointer = stored;
	}
	instrument_before(in, store);
	if (!is_scalar(type)) {
		LLVMValueRef at = symbolic_word(in, pointer);

		symbolic_if_touched(in, "__perdure_sym_clear", at, at,
				    LLVMConstInt(in->i64, size, false));
		return;
	}
	stored = symbolic_store(in, shadow, pointer, size, shadow_of(in, values, value),
				symbolic_word(in, value));
	if (!LLVMIsNull(shadow_of(in, values, value)))
		LLVMSetOperand(store, 0, symbolic_unword(in, stored, type));
}

/* Locked instructions: everything is fixed. */
static void instrument_atomic(struct instrumenter *in, struct values *values, LLVMValueRef i)
{
	LLVMTypeRef type = LLVMTypeOf(LLVMGetOperand(i, 1));
	LLVMValueRef at;

	fix_operands(in, values, i);
	instrument_before(in, i);
	at = symbolic_word(in, LLVMGetOperand(i, 0));
	symbolic_if_touched(in, "__perdure_sym_fix_memory", at, at,
			    LLVMConstInt(in->i64, size_of(in, type), false));
}

/* ---- where to go ---- */

static void instrument_branch(struct instrumenter *in, struct values *values, LLVMValueRef branch)
{
	LLVMValueRef condition, shadow;

	if (!LLVMIsConditional(branch))
		return;
	condition = LLVMGetCondition(branch);
	shadow = shadow_of(in, values, condition);
	if (!LLVMIsNull(shadow)) {
		instrument_before(in, branch);
		LLVMSetCondition(branch, symbolic_branch(in, shadow, condition, values->site));
	}
	values->site += 2;
}

static void instrument_switch(struct instrumenter *in, struct values *values, LLVMValueRef i)
{
	unsigned count = LLVMGetNumSuccessors(i) - 1;
	LLVMValueRef value = LLVMGetOperand(i, 0), shadow = shadow_of(in, values, value);
	LLVMValueRef *list, cases, content;

	values->site += count + 1;
	if (LLVMIsNull(shadow))
		return;
	list = calloc(count + 1, sizeof(*list));
	if (!list)
		abort();
	for (unsigned n = 0; n < count; n++)
		list[n] = LLVMConstInt(
			in->i64, LLVMConstIntGetZExtValue(LLVMGetOperand(i, 2 + 2 * n)), false);
	content = LLVMConstArray2(in->i64, list, count);
	free(list);
	cases = LLVMAddGlobal(in->module, LLVMTypeOf(content), "__perdure.sym.cases");
	LLVMSetInitializer(cases, content);
	LLVMSetGlobalConstant(cases, true);
	LLVMSetLinkage(cases, LLVMPrivateLinkage);
	instrument_before(in, i);
	LLVMSetOperand(i, 0,
		       symbolic_switch(in, shadow, value, cases, count, values->site - count - 1));
}

static void instrument_return(struct instrumenter *in, struct values *values, LLVMValueRef i)
{
	if (!LLVMGetNumOperands(i) || !is_scalar(LLVMTypeOf(LLVMGetOperand(i, 0)))) {
		fix_operands(in, values, i);
		return;
	}
	instrument_before(in, i);
	symbolic_return(in, in->function, shadow_of(in, values, LLVMGetOperand(i, 0)));
}

/* ---- intrinsics ---- */

static const struct intrinsic {
	const char *name;
	uint8_t op, operands;
	bool pair; /* the result, and whether it does not fit */
} intrinsics[] = {
	{ "llvm.bswap.", SYMBOLIC_BSWAP, 1, false },
	{ "llvm.bitreverse.", SYMBOLIC_REVERSE, 1, false },
	{ "llvm.ctpop.", SYMBOLIC_POPULATION, 1, false },
	{ "llvm.ctlz.", SYMBOLIC_LEADING, 1, false },
	{ "llvm.cttz.", SYMBOLIC_TRAILING, 1, false },
	{ "llvm.abs.", SYMBOLIC_ABS, 1, false },
	{ "llvm.umin.", SYMBOLIC_UMIN, 2, false },
	{ "llvm.umax.", SYMBOLIC_UMAX, 2, false },
	{ "llvm.smin.", SYMBOLIC_SMIN, 2, false },
	{ "llvm.smax.", SYMBOLIC_SMAX, 2, false },
	{ "llvm.uadd.sat.", SYMBOLIC_UADD_SAT, 2, false },
	{ "llvm.sadd.sat.", SYMBOLIC_SADD_SAT, 2, false },
	{ "llvm.usub.sat.", SYMBOLIC_USUB_SAT, 2, false },
	{ "llvm.ssub.sat.", SYMBOLIC_SSUB_SAT, 2, false },
	{ "llvm.uadd.with.overflow.", SYMBOLIC_UADD_OVER, 2, true },
	{ "llvm.sadd.with.overflow.", SYMBOLIC_SADD_OVER, 2, true },
	{ "llvm.usub.with.overflow.", SYMBOLIC_USUB_OVER, 2, true },
	{ "llvm.ssub.with.overflow.", SYMBOLIC_SSUB_OVER, 2, true },
	{ "llvm.umul.with.overflow.", SYMBOLIC_UMUL_OVER, 2, true },
	{ "llvm.smul.with.overflow.", SYMBOLIC_SMUL_OVER, 2, true },
};

static bool starts(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool instrument_arithmetic(struct instrumenter *in, struct values *values, LLVMValueRef call,
				  const char *name)
{
	static const uint8_t plain[] = {
		[SYMBOLIC_UADD_OVER] = SYMBOLIC_ADD, [SYMBOLIC_SADD_OVER] = SYMBOLIC_ADD,
		[SYMBOLIC_USUB_OVER] = SYMBOLIC_SUB, [SYMBOLIC_SSUB_OVER] = SYMBOLIC_SUB,
		[SYMBOLIC_UMUL_OVER] = SYMBOLIC_MUL, [SYMBOLIC_SMUL_OVER] = SYMBOLIC_MUL,
	};

	for (unsigned i = 0; i < sizeof(intrinsics) / sizeof(*intrinsics); i++) {
		const struct intrinsic *known = &intrinsics[i];
		LLVMValueRef a = LLVMGetOperand(call, 0), b;

		if (!starts(name, known->name) || !is_scalar(LLVMTypeOf(a)))
			continue;
		b = known->operands == 2 ? LLVMGetOperand(call, 1) : LLVMConstNull(LLVMTypeOf(a));
		instrument_before(in, call);
		put(values, call, known->pair,
		    binary(in, values, known->op, width_of(LLVMTypeOf(a)), a, b));
		if (known->pair)
			put(values, call, 0,
			    binary(in, values, plain[known->op], width_of(LLVMTypeOf(a)), a, b));
		return true;
	}
	return false;
}

/* Rotations by a constant are in every hash function. */
static bool instrument_rotation(struct instrumenter *in, struct values *values, LLVMValueRef call,
				const char *name)
{
	bool left = starts(name, "llvm.fshl.");
	LLVMValueRef a = LLVMGetOperand(call, 0), b = LLVMGetOperand(call, 1),
		     by = LLVMGetOperand(call, 2);
	LLVMValueRef high, low, high_word, low_word;
	unsigned width, count;

	if (!is_scalar(LLVMTypeOf(a)) || !LLVMIsAConstantInt(by))
		return false;
	width = width_of(LLVMTypeOf(a));
	count = (unsigned)(LLVMConstIntGetZExtValue(by) % width);
	instrument_before(in, call);
	if (!count) {
		put(values, call, 0, shadow_of(in, values, left ? a : b));
		return true;
	}
	high = LLVMConstInt(LLVMTypeOf(a), left ? count : width - count, false);
	low = LLVMConstInt(LLVMTypeOf(a), left ? width - count : count, false);
	high_word = symbolic_word(in, LLVMBuildShl(in->builder, a, high, ""));
	low_word = symbolic_word(in, LLVMBuildLShr(in->builder, b, low, ""));
	put(values, call, 0,
	    symbolic_binary(in, SYMBOLIC_OR, width,
			    binary(in, values, SYMBOLIC_SHL, width, a, high), high_word,
			    binary(in, values, SYMBOLIC_LSHR, width, b, low), low_word));
	return true;
}

static void instrument_intrinsic_call(struct instrumenter *in, struct values *values,
				      LLVMValueRef call, const char *name)
{
	if (instrument_arithmetic(in, values, call, name))
		return;
	if (starts(name, "llvm.fshl.") || starts(name, "llvm.fshr.")) {
		if (instrument_rotation(in, values, call, name))
			return;
	} else if (starts(name, "llvm.expect.") || starts(name, "llvm.launder.") ||
		   starts(name, "llvm.ptr.annotation") || starts(name, "llvm.annotation")) {
		put(values, call, 0, shadow_of(in, values, LLVMGetOperand(call, 0)));
		return;
	} else if (starts(name, "llvm.dbg.") || starts(name, "llvm.lifetime.") ||
		   starts(name, "llvm.assume") || starts(name, "llvm.prefetch") ||
		   starts(name, "llvm.is.constant") || starts(name, "llvm.objectsize") ||
		   starts(name, "llvm.experimental.noalias")) {
		return;
	}
	fix_operands(in, values, call);
	instrument_before(in, call);
	if (starts(name, "llvm.memcpy") || starts(name, "llvm.memmove")) {
		symbolic_if_touched(in, "__perdure_sym_copy",
				    symbolic_word(in, LLVMGetOperand(call, 0)),
				    symbolic_word(in, LLVMGetOperand(call, 1)),
				    symbolic_word(in, LLVMGetOperand(call, 2)));
	} else if (starts(name, "llvm.memset")) {
		LLVMValueRef to = symbolic_word(in, LLVMGetOperand(call, 0));

		/* What it is filled with was fixed above. */
		symbolic_if_touched(in, "__perdure_sym_clear", to, to,
				    symbolic_word(in, LLVMGetOperand(call, 2)));
	} else if (starts(name, "llvm.va_start")) {
		LLVMValueRef arguments[2] = { symbolic_word(in, LLVMGetOperand(call, 0)),
					      LLVMConstInt(in->i32, LLVMCountParams(in->function),
							   false) };

		instrument_after(in, call);
		symbolic_call(in, "__perdure_sym_va_start", in->void_type, arguments, 2);
	}
}

/* ---- calls ---- */

/* Right behind a call, also behind one that may throw. False if there is no such place. */
static bool position_behind(struct instrumenter *in, LLVMValueRef call)
{
	LLVMBasicBlockRef next;
	LLVMValueRef at;

	if (LLVMIsACallInst(call)) {
		instrument_after(in, call);
		return true;
	}
	if (!LLVMIsAInvokeInst(call))
		return false;
	next = LLVMGetNormalDest(call);
	if (LLVMGetNextUse(LLVMGetFirstUse(LLVMBasicBlockAsValue(next))))
		return false; /* one gets there by other ways, too */
	at = LLVMGetFirstInstruction(next);
	while (LLVMIsAPHINode(at))
		at = LLVMGetNextInstruction(at);
	instrument_before(in, at);
	return true;
}

/* What the program is told has to be true, if it is not known to understand expressions. */
static void pass_arguments(struct instrumenter *in, struct values *values, LLVMValueRef call,
			   LLVMValueRef callee, bool own)
{
	unsigned count = LLVMGetNumArgOperands(call), passed = 0;
	LLVMValueRef shadows[SYMBOLIC_ARGUMENTS], word;

	instrument_before(in, call);
	word = symbolic_word(in, callee);
	for (unsigned i = 0; i < count; i++) {
		LLVMValueRef argument = LLVMGetOperand(call, i);
		LLVMTypeRef type = LLVMTypeOf(argument);

		if (!is_scalar(type)) {
			if (i < SYMBOLIC_ARGUMENTS)
				shadows[passed++] = none(in);
			continue;
		}
		if (i < SYMBOLIC_ARGUMENTS) {
			shadows[passed++] = shadow_of(in, values, argument);
			if (!own)
				resolve_operand(in, values, call, i, "__perdure_sym_argument",
						word);
		} else {
			fix_operand(in, values, call, i);
		}
		if (!own && LLVMGetTypeKind(type) == LLVMPointerTypeKind &&
		    !LLVMIsConstant(argument)) {
			LLVMValueRef at;

			instrument_before(in, call);
			at = symbolic_word(in, LLVMGetOperand(call, i));
			symbolic_if_touched(in, "__perdure_sym_shown", at, word,
					    LLVMConstInt(in->i64, 0, false));
		}
	}
	instrument_before(in, call);
	symbolic_pass(in, callee, shadows, passed);
}

/* What it is given is decided, or does not matter; there is nothing symbolic about the result. */
static void instrument_known(struct instrumenter *in, struct values *values, LLVMValueRef call,
			     const struct known_call *known)
{
	bool shows = !known->before && !known->after && !known->instead;

	for (unsigned i = 0; i < LLVMGetNumArgOperands(call); i++)
		resolve_operand(in, values, call, i,
				shows ? "__perdure_sym_now" : "__perdure_sym_each",
				loss(in, SYMBOLIC_LOST_SIZE));
	if (known->before)
		calls_before(in, call, known);
	if (known->after && position_behind(in, call))
		calls_after(in, call, known);
}

static void instrument_plain_call(struct instrumenter *in, struct values *values, LLVMValueRef call,
				  LLVMValueRef callee)
{
	bool known = LLVMIsAFunction(callee);
	const char *name = known ? LLVMGetValueName(callee) : "";
	const struct known_call *special =
		known && LLVMIsDeclaration(callee) ? calls_find(name) : NULL;
	bool own = known && !LLVMIsDeclaration(callee) &&
		   !LLVMIsFunctionVarArg(LLVMGlobalGetValueType(callee));

	if (!known) {
		int last = LLVMGetNumOperands(call) - 1;

		/* A function pointer: each that it can be. */
		if (LLVMGetOperand(call, last) == callee)
			settle_operand(in, values, call, last);
		callee = LLVMGetCalledValue(call);
	}
	if (special && special->instead && LLVMIsACallInst(call)) {
		callee = calls_replace(in, call, special);
		own = true;
	} else if (special) {
		instrument_known(in, values, call, special);
		return;
	}
	pass_arguments(in, values, call, callee, own);
	if (is_scalar(LLVMTypeOf(call)) && position_behind(in, call))
		put(values, call, 0, symbolic_result(in, callee));
}

static void instrument_call(struct instrumenter *in, struct values *values, LLVMValueRef call)
{
	LLVMValueRef callee = LLVMGetCalledValue(call);

	if (LLVMIsAInlineAsm(callee)) {
		fix_operands(in, values, call);
		for (unsigned i = 0; i < LLVMGetNumArgOperands(call); i++) {
			LLVMValueRef at = LLVMGetOperand(call, i);

			if (LLVMGetTypeKind(LLVMTypeOf(at)) != LLVMPointerTypeKind ||
			    LLVMIsConstant(at))
				continue;
			instrument_before(in, call);
			at = symbolic_word(in, at);
			symbolic_if_touched(in, "__perdure_sym_assembly", at, at,
					    LLVMConstInt(in->i64, 0, false));
		}
		return;
	}
	if (LLVMIsAFunction(callee) && LLVMGetIntrinsicID(callee)) {
		instrument_intrinsic_call(in, values, call, LLVMGetValueName(callee));
		return;
	}
	if (LLVMIsAFunction(callee) && starts(LLVMGetValueName(callee), "__perdure") &&
	    !calls_find(LLVMGetValueName(callee))) {
		fix_operands(in, values, call);
		return;
	}
	instrument_plain_call(in, values, call, callee);
}

/* ---- functions ---- */

static void instrument_instruction(struct instrumenter *in, struct values *values, LLVMValueRef i)
{
	LLVMOpcode opcode = LLVMGetInstructionOpcode(i);

	if (opcode < sizeof(operations) && operations[opcode]) {
		instrument_binary(in, values, i);
		return;
	}
	switch (opcode) {
	case LLVMPHI:
		break; /* has been dealt with */
	case LLVMICmp:
		instrument_compare(in, values, i);
		break;
	case LLVMTrunc:
	case LLVMZExt:
	case LLVMSExt:
	case LLVMPtrToInt:
	case LLVMIntToPtr:
	case LLVMBitCast:
		instrument_cast(in, values, i);
		break;
	case LLVMFreeze:
		put(values, i, 0, shadow_of(in, values, LLVMGetOperand(i, 0)));
		break;
	case LLVMSelect:
		instrument_select(in, values, i);
		break;
	case LLVMGetElementPtr:
		instrument_gep(in, values, i);
		break;
	case LLVMExtractValue:
		if (LLVMGetNumIndices(i) == 1)
			put(values, i, 0,
			    shadow_leaf(in, values, LLVMGetOperand(i, 0), LLVMGetIndices(i)[0]));
		break;
	case LLVMLoad:
		instrument_load(in, values, i);
		break;
	case LLVMStore:
		instrument_store(in, values, i);
		break;
	case LLVMAtomicRMW:
	case LLVMAtomicCmpXchg:
		instrument_atomic(in, values, i);
		break;
	case LLVMBr:
		instrument_branch(in, values, i);
		break;
	case LLVMSwitch:
		instrument_switch(in, values, i);
		break;
	case LLVMRet:
		instrument_return(in, values, i);
		break;
	case LLVMCall:
	case LLVMInvoke:
	case LLVMCallBr:
		instrument_call(in, values, i);
		break;
	default:
		fix_operands(in, values, i);
	}
}

struct order {
	LLVMBasicBlockRef *list;
	size_t count;
};

/* Blocks so that what a block uses comes before it, but for ways back. */
static void visit(LLVMBasicBlockRef block, struct order *order, struct values *seen,
		  struct instrumenter *in)
{
	struct item {
		LLVMBasicBlockRef block;
		unsigned next;
	} *stack = calloc(LLVMCountBasicBlocks(in->function) + 1ul, sizeof(*stack));
	size_t depth = 0;

	if (!stack)
		abort();
	stack[depth++].block = block;
	put(seen, LLVMBasicBlockAsValue(block), 0, none(in));
	while (depth) {
		struct item *top = &stack[depth - 1];
		LLVMValueRef end = LLVMGetBasicBlockTerminator(top->block);

		if (end && top->next < LLVMGetNumSuccessors(end)) {
			LLVMBasicBlockRef next = LLVMGetSuccessor(end, top->next++);
			LLVMValueRef value = LLVMBasicBlockAsValue(next);

			if (seen->slot[slot_of(seen, value, 0)].value)
				continue;
			put(seen, value, 0, none(in));
			stack[depth++] = (struct item){ next, 0 };
			continue;
		}
		order->list[order->count++] = top->block;
		depth--;
	}
	free(stack);
}

static void add_phis(struct instrumenter *in, struct values *values, const struct order *order)
{
	for (size_t b = order->count; b-- > 0;)
		for (LLVMValueRef i = LLVMGetFirstInstruction(order->list[b]);
		     i && LLVMIsAPHINode(i); i = LLVMGetNextInstruction(i)) {
			if (!is_scalar(LLVMTypeOf(i)))
				continue;
			LLVMPositionBuilderBefore(in->builder, i);
			LLVMSetCurrentDebugLocation2(in->builder, NULL);
			put(values, i, 0, LLVMBuildPhi(in->builder, in->i32, ""));
		}
}

static void fill_phis(struct instrumenter *in, struct values *values, const struct order *order)
{
	for (size_t b = order->count; b-- > 0;)
		for (LLVMValueRef i = LLVMGetFirstInstruction(order->list[b]);
		     i && LLVMIsAPHINode(i); i = LLVMGetNextInstruction(i)) {
			LLVMValueRef shadow = shadow_of(in, values, i);

			if (LLVMIsNull(shadow))
				continue;
			for (unsigned n = 0; n < LLVMCountIncoming(i); n++) {
				LLVMBasicBlockRef from = LLVMGetIncomingBlock(i, n);
				LLVMValueRef value =
					shadow_of(in, values, LLVMGetIncomingValue(i, n));

				LLVMAddIncoming(shadow, &value, &from, 1);
			}
		}
}

static LLVMValueRef first_behind_allocas(LLVMValueRef function)
{
	LLVMValueRef at = LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(function));

	while (LLVMIsAAllocaInst(at))
		at = LLVMGetNextInstruction(at);
	return at;
}

static void take_parameters(struct instrumenter *in, struct values *values, LLVMValueRef function)
{
	LLVMValueRef shadows[SYMBOLIC_ARGUMENTS];
	unsigned count = LLVMCountParams(function);

	if (count > SYMBOLIC_ARGUMENTS)
		count = SYMBOLIC_ARGUMENTS;
	if (!count)
		return;
	instrument_before(in, first_behind_allocas(function));
	symbolic_take(in, function, shadows, count);
	for (unsigned i = 0; i < count; i++)
		if (is_scalar(LLVMTypeOf(LLVMGetParam(function, i))))
			put(values, LLVMGetParam(function, i), 0, shadows[i]);
}

/* Branches are counted in this order by the static analysis, too. */
static void instrument_function(struct instrumenter *in, LLVMValueRef function, uint64_t *site)
{
	struct values values = { .site = *site }, seen = { 0 };
	struct order order = {
		calloc(LLVMCountBasicBlocks(function) + 1ul, sizeof(LLVMBasicBlockRef)), 0
	};
	LLVMValueRef *list = NULL;
	size_t count = 0, room = 0;

	if (!order.list)
		abort();
	in->function = function;
	visit(LLVMGetEntryBasicBlock(function), &order, &seen, in);
	for (size_t b = order.count; b-- > 0;)
		for (LLVMValueRef i = LLVMGetFirstInstruction(order.list[b]); i;
		     i = LLVMGetNextInstruction(i)) {
			if (count == room) {
				room = room ? room * 2 : 256;
				list = realloc(list, room * sizeof(*list));
				if (!list)
					abort();
			}
			list[count++] = i;
		}
	take_parameters(in, &values, function);
	add_phis(in, &values, &order);
	for (size_t i = 0; i < count; i++)
		instrument_instruction(in, &values, list[i]);
	fill_phis(in, &values, &order);
	*site = values.site;
	free(values.slot);
	free(seen.slot);
	free(order.list);
	free(list);
}

/* ---- the module ---- */

static bool is_wanted(LLVMValueRef function)
{
	unsigned naked = LLVMGetEnumAttributeKindForName("naked", 5);

	return !LLVMIsDeclaration(function) && !starts(LLVMGetValueName(function), "__perdure") &&
	       !LLVMGetEnumAttributeAtIndex(function, LLVMAttributeFunctionIndex, naked);
}

/* Sites of different files differ: by the name of the file. */
uint64_t symbolic_first_site(LLVMModuleRef module)
{
	uint64_t hash = 14695981039346656037ull;
	size_t length;
	const char *name = LLVMGetSourceFileName(module, &length);

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)name[i]) * 1099511628211ull;
	return hash << 24;
}

/* A table of the functions, and a constructor that shows it to the runtime. */
static void register_functions(struct instrumenter *in, LLVMValueRef *list, unsigned count)
{
	LLVMTypeRef types[2] = { in->pointer, in->i64 };
	LLVMTypeRef type = LLVMFunctionType(in->void_type, types, 2, false);
	LLVMTypeRef none_type = LLVMFunctionType(in->void_type, NULL, 0, false);
	LLVMValueRef table, content, constructor, arguments[2], entry[3], all, hook;
	LLVMTypeRef fields[3] = { in->i32, in->pointer, in->pointer }, entry_type;

	content = LLVMConstArray2(in->pointer, list, count);
	table = LLVMAddGlobal(in->module, LLVMTypeOf(content), "__perdure.sym.functions");
	LLVMSetInitializer(table, content);
	LLVMSetLinkage(table, LLVMPrivateLinkage);
	constructor = LLVMAddFunction(in->module, "__perdure.sym.register", none_type);
	LLVMSetLinkage(constructor, LLVMInternalLinkage);
	LLVMPositionBuilderAtEnd(in->builder,
				 LLVMAppendBasicBlockInContext(in->context, constructor, ""));
	LLVMSetCurrentDebugLocation2(in->builder, NULL);
	hook = LLVMAddFunction(in->module, "__perdure_sym_register", type);
	arguments[0] = table;
	arguments[1] = LLVMConstInt(in->i64, count, false);
	LLVMBuildCall2(in->builder, type, hook, arguments, 2, "");
	LLVMBuildRetVoid(in->builder);
	entry_type = LLVMStructTypeInContext(in->context, fields, 3, false);
	entry[0] = LLVMConstInt(in->i32, 0, false);
	entry[1] = constructor;
	entry[2] = LLVMConstNull(in->pointer);
	all = LLVMGetNamedGlobal(in->module, "llvm.global_ctors");
	if (all) {
		LLVMValueRef old = LLVMGetInitializer(all), *entries;
		unsigned before = (unsigned)LLVMGetArrayLength2(LLVMTypeOf(old));

		entries = calloc(before + 1, sizeof(*entries));
		if (!entries)
			abort();
		for (unsigned i = 0; i < before; i++)
			entries[i] = LLVMGetAggregateElement(old, i);
		entries[before] = LLVMConstStructInContext(in->context, entry, 3, false);
		content = LLVMConstArray2(entry_type, entries, before + 1);
		free(entries);
		LLVMDeleteGlobal(all);
	} else {
		LLVMValueRef one = LLVMConstStructInContext(in->context, entry, 3, false);

		content = LLVMConstArray2(entry_type, &one, 1);
	}
	all = LLVMAddGlobal(in->module, LLVMTypeOf(content), "llvm.global_ctors");
	LLVMSetInitializer(all, content);
	LLVMSetLinkage(all, LLVMAppendingLinkage);
}

void symbolic_instrument(struct instrumenter *in)
{
	LLVMValueRef last = LLVMGetLastFunction(in->module), *list = NULL;
	uint64_t site = symbolic_first_site(in->module);
	unsigned count = 0;

	for (LLVMValueRef f = LLVMGetFirstFunction(in->module); f; f = LLVMGetNextFunction(f)) {
		if (is_wanted(f)) {
			instrument_function(in, f, &site);
			list = realloc(list, (count + 1) * sizeof(*list));
			if (!list)
				abort();
			list[count++] = f;
		}
		if (f == last)
			break;
	}
	if (count)
		register_functions(in, list, count);
	free(list);
}
