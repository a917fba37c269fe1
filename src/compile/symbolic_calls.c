/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "compile/calls.h"
#include "compile/symbolic.h"
#include "compile/symbolic_values.h"

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

		if (!starts(name, known->name) || !values_is_scalar(LLVMTypeOf(a)))
			continue;
		b = known->operands == 2 ? LLVMGetOperand(call, 1) : LLVMConstNull(LLVMTypeOf(a));
		instrument_before(in, call);
		values_put(values, call, known->pair,
			   values_binary(in, values, known->op, values_width(LLVMTypeOf(a)), a, b));
		if (known->pair)
			values_put(values, call, 0,
				   values_binary(in, values, plain[known->op],
						 values_width(LLVMTypeOf(a)), a, b));
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

	if (!values_is_scalar(LLVMTypeOf(a)) || !LLVMIsAConstantInt(by))
		return false;
	width = values_width(LLVMTypeOf(a));
	count = (unsigned)(LLVMConstIntGetZExtValue(by) % width);
	instrument_before(in, call);
	if (!count) {
		values_put(values, call, 0, values_shadow(in, values, left ? a : b));
		return true;
	}
	high = LLVMConstInt(LLVMTypeOf(a), left ? count : width - count, false);
	low = LLVMConstInt(LLVMTypeOf(a), left ? width - count : count, false);
	high_word = symbolic_word(in, LLVMBuildShl(in->builder, a, high, ""));
	low_word = symbolic_word(in, LLVMBuildLShr(in->builder, b, low, ""));
	values_put(
		values, call, 0,
		symbolic_binary(in, SYMBOLIC_OR, width,
				values_binary(in, values, SYMBOLIC_SHL, width, a, high), high_word,
				values_binary(in, values, SYMBOLIC_LSHR, width, b, low), low_word));
	return true;
}

static void fill_memory(struct instrumenter *in, struct values *values, LLVMValueRef call)
{
	LLVMValueRef arguments[3], shadow = values_shadow(in, values, LLVMGetOperand(call, 1));

	values_settle(in, values, call, 0);
	values_resolve(in, values, call, 1, "__perdure_sym_now", values_loss(in, 0));
	values_resolve(in, values, call, 2, "__perdure_sym_each",
		       values_loss(in, SYMBOLIC_LOST_SIZE));
	instrument_before(in, call);
	arguments[0] = symbolic_word(in, LLVMGetOperand(call, 0));
	arguments[2] = symbolic_word(in, LLVMGetOperand(call, 2));
	if (LLVMIsNull(shadow)) {
		symbolic_if_touched(in, "__perdure_sym_clear", arguments[0], arguments[0],
				    arguments[2]);
		return;
	}
	arguments[1] = shadow;
	symbolic_call(in, "__perdure_sym_fill", in->void_type, arguments, 3);
}

static unsigned scalar_parameters(LLVMValueRef function)
{
	unsigned count = 0;

	for (unsigned i = 0; i < LLVMCountParams(function); i++)
		count += values_is_scalar(LLVMTypeOf(LLVMGetParam(function, i)));
	return count;
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
		values_put(values, call, 0, values_shadow(in, values, LLVMGetOperand(call, 0)));
		return;
	} else if (starts(name, "llvm.dbg.") || starts(name, "llvm.lifetime.end") ||
		   starts(name, "llvm.assume") || starts(name, "llvm.prefetch") ||
		   starts(name, "llvm.is.constant") || starts(name, "llvm.objectsize") ||
		   starts(name, "llvm.experimental.noalias")) {
		return;
	}
	if (starts(name, "llvm.memset")) {
		fill_memory(in, values, call);
		return;
	}
	values_fix_all(in, values, call);
	instrument_before(in, call);
	if (starts(name, "llvm.lifetime.start")) {
		LLVMValueRef at = symbolic_word(in, LLVMGetOperand(call, 1));

		instrument_after(in, call);
		symbolic_if_touched(in, "__perdure_sym_clear", at, at, LLVMGetOperand(call, 0));
	} else if (starts(name, "llvm.memcpy") || starts(name, "llvm.memmove")) {
		symbolic_if_touched(in, "__perdure_sym_copy",
				    symbolic_word(in, LLVMGetOperand(call, 0)),
				    symbolic_word(in, LLVMGetOperand(call, 1)),
				    symbolic_word(in, LLVMGetOperand(call, 2)));
	} else if (starts(name, "llvm.va_start") && values->variable) {
		LLVMValueRef arguments[3] = { symbolic_word(in, LLVMGetOperand(call, 0)),
					      LLVMConstInt(in->i32, scalar_parameters(in->function),
							   false),
					      values->variable };

		instrument_after(in, call);
		symbolic_call(in, "__perdure_sym_va_start", in->void_type, arguments, 3);
	} else if (starts(name, "llvm.va_end") && values->variable) {
		symbolic_call(in, "__perdure_sym_va_end", in->void_type, &values->variable, 1);
	}
}

/* ---- calls ---- */

/* Right behind a call, also behind one that may throw. False if there is no such place. */
static bool position_behind(struct instrumenter *in, LLVMValueRef call)
{
	LLVMBasicBlockRef next;
	LLVMValueRef at;

	if (LLVMIsACallInst(call)) {
		if (LLVMGetTailCallKind(call) == LLVMTailCallKindMustTail)
			return false; /* its result is the function's */
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

/* Can there be anything symbolic where it points to? */
static bool may_change(LLVMValueRef pointer)
{
	return !LLVMIsNull(pointer) && !LLVMIsUndef(pointer) && !LLVMIsAFunction(pointer) &&
	       !(LLVMIsAGlobalVariable(pointer) && LLVMIsGlobalConstant(pointer));
}

/* Is this body the one that will be called, whatever else the program is linked with? */
static bool is_final(LLVMValueRef function)
{
	LLVMLinkage linkage = LLVMGetLinkage(function);

	return !LLVMIsDeclaration(function) &&
	       (linkage == LLVMInternalLinkage || linkage == LLVMPrivateLinkage ||
		linkage == LLVMExternalLinkage) &&
	       !LLVMIsFunctionVarArg(LLVMGlobalGetValueType(function));
}

/* What the program is told has to be true, if it is not known to understand expressions. */
/* The variable that a pointer leads into, and how much of it is behind; 0 if that is not known. */
static uint64_t known_size(struct instrumenter *in, LLVMValueRef pointer)
{
	LLVMTypeRef type = NULL;

	if (LLVMIsAAllocaInst(pointer) && LLVMIsAConstantInt(LLVMGetOperand(pointer, 0)))
		type = LLVMGetAllocatedType(pointer);
	else if (LLVMIsAGlobalVariable(pointer))
		type = LLVMGlobalGetValueType(pointer);
	return type && LLVMTypeIsSized(type) ? LLVMABISizeOfType(in->layout, type) : 0;
}

static uint64_t copied_size(struct instrumenter *in, LLVMValueRef call, unsigned i)
{
	unsigned kind = LLVMGetEnumAttributeKindForName("byval", 5);
	LLVMAttributeRef byval = LLVMGetCallSiteEnumAttribute(call, i + 1, kind);

	return byval ? LLVMABISizeOfType(in->layout, LLVMGetTypeAttributeValue(byval)) : 0;
}

/*
 * What a pointer leads to is fixed for code without expressions. A structure that is passed by
 * value is copied by code that nobody sees.
 */
static void show_memory(struct instrumenter *in, LLVMValueRef call, unsigned i, LLVMValueRef callee,
			bool own)
{
	uint64_t size = copied_size(in, call, i);
	LLVMValueRef pointer = LLVMGetOperand(call, i), at;

	if (own && !size)
		return;
	instrument_before(in, call);
	at = symbolic_word(in, pointer);
	if (size)
		symbolic_if_touched(in, "__perdure_sym_fix_memory", at, at,
				    LLVMConstInt(in->i64, size, false));
	else
		symbolic_if_touched(in, "__perdure_sym_shown", at, callee,
				    LLVMConstInt(in->i64, known_size(in, pointer), false));
}

static void pass_arguments(struct instrumenter *in, struct values *values, LLVMValueRef call,
			   LLVMValueRef callee, bool own)
{
	bool variable = LLVMIsFunctionVarArg(LLVMGetCalledFunctionType(call));
	unsigned count = LLVMGetNumArgOperands(call), passed = 0;
	LLVMValueRef shadows[SYMBOLIC_ARGUMENTS], word;

	instrument_before(in, call);
	word = symbolic_word(in, callee);
	for (unsigned i = 0; i < count; i++) {
		LLVMValueRef argument = LLVMGetOperand(call, i);
		LLVMTypeRef type = LLVMTypeOf(argument);

		if (!values_is_scalar(type)) {
			/* Those behind "..." are numbered as the registers that they are in. */
			if (passed < SYMBOLIC_ARGUMENTS && !variable)
				shadows[passed++] = values_none(in);
			continue;
		}
		if (passed < SYMBOLIC_ARGUMENTS) {
			shadows[passed++] = values_shadow(in, values, argument);
			if (!own)
				values_resolve(in, values, call, i, "__perdure_sym_argument", word);
		} else {
			values_fix(in, values, call, i);
		}
		if (LLVMGetTypeKind(type) == LLVMPointerTypeKind && may_change(argument))
			show_memory(in, call, i, word, own);
	}
	instrument_before(in, call);
	symbolic_pass(in, callee, shadows, passed);
}

/* What is printed to a file may be read again; elsewhere nobody cares. */
static void print(struct instrumenter *in, struct values *values, LLVMValueRef call, unsigned file)
{
	LLVMValueRef stream;

	values_settle(in, values, call, file);
	for (unsigned i = 0; i < LLVMGetNumArgOperands(call); i++) {
		LLVMValueRef argument = LLVMGetOperand(call, i);

		if (i == file || !values_is_scalar(LLVMTypeOf(argument)))
			continue;
		instrument_before(in, call);
		stream = symbolic_word(in, LLVMGetOperand(call, file));
		values_resolve(in, values, call, i, "__perdure_sym_printed", stream);
		if (LLVMGetTypeKind(LLVMTypeOf(argument)) != LLVMPointerTypeKind ||
		    !may_change(argument))
			continue;
		instrument_before(in, call);
		symbolic_if_touched(in, "__perdure_sym_printed_memory",
				    symbolic_word(in, LLVMGetOperand(call, i)), stream,
				    LLVMConstInt(in->i64, known_size(in, argument), false));
	}
}

static bool is_size(LLVMValueRef call, unsigned i)
{
	return LLVMGetTypeKind(LLVMTypeOf(LLVMGetOperand(call, i))) == LLVMIntegerTypeKind;
}

/* What it is given is decided, or does not matter; there is nothing symbolic about the result. */
static void instrument_known(struct instrumenter *in, struct values *values, LLVMValueRef call,
			     const struct known_call *known)
{
	bool shows = !known->before && !known->after && !known->instead && !known->decides;

	if (shows && known->to >= 0) {
		print(in, values, call, (unsigned)known->to);
		return;
	}
	for (unsigned i = 0; i < LLVMGetNumArgOperands(call); i++)
		values_resolve(in, values, call, i,
			       shows                              ? "__perdure_sym_now"
			       : known->makes && is_size(call, i) ? "__perdure_sym_room"
								  : "__perdure_sym_each",
			       values_loss(in, SYMBOLIC_LOST_SIZE));
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
	bool own = known && is_final(callee);

	if (!known) {
		int last = LLVMGetNumOperands(call) - 1;

		/* A function pointer: each that it can be. */
		if (LLVMGetOperand(call, last) == callee)
			values_settle(in, values, call, last);
		callee = LLVMGetCalledValue(call);
	}
	if (special && special->instead && !LLVMIsACallBrInst(call)) {
		callee = calls_replace(in, call, special);
		own = true;
	} else if (special) {
		instrument_known(in, values, call, special);
		return;
	}
	pass_arguments(in, values, call, callee, own);
	if (!values_leaves(LLVMTypeOf(call)) || !position_behind(in, call))
		return;
	for (unsigned i = 0; i < values_leaves(LLVMTypeOf(call)); i++)
		if (values_is_scalar(values_leaf_type(LLVMTypeOf(call), i)))
			values_put(values, call, i, symbolic_result(in, callee, i));
}

void symbolic_on_call(struct instrumenter *in, struct values *values, LLVMValueRef call)
{
	LLVMValueRef callee = LLVMGetCalledValue(call);

	if (LLVMIsAInlineAsm(callee)) {
		values_fix_all(in, values, call);
		for (unsigned i = 0; i < LLVMGetNumArgOperands(call); i++) {
			LLVMValueRef at = LLVMGetOperand(call, i);

			if (LLVMGetTypeKind(LLVMTypeOf(at)) != LLVMPointerTypeKind ||
			    !may_change(at))
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
		values_fix_all(in, values, call);
		return;
	}
	instrument_plain_call(in, values, call, callee);
}
