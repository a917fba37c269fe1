/* SPDX-License-Identifier: BSD-3-Clause */
/* Hooks for what inline assembly does. */
#include "compile/assembly.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compile/instrument.h"

static LLVMTypeRef operand_type(struct instrumenter *in, LLVMValueRef call, int argument)
{
	unsigned kind = LLVMGetEnumAttributeKindForName("elementtype", 11);
	LLVMAttributeRef attribute = LLVMGetCallSiteEnumAttribute(call, argument + 1, kind);

	return attribute ? LLVMGetTypeAttributeValue(attribute) : in->i64;
}

static LLVMValueRef as_pointer(struct instrumenter *in, LLVMValueRef value)
{
	LLVMTypeRef type = LLVMTypeOf(value);

	if (LLVMGetTypeKind(type) == LLVMPointerTypeKind)
		return value;
	if (LLVMGetTypeKind(type) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(type) == 64)
		return LLVMBuildIntToPtr(in->builder, value, in->pointer, "");
	return NULL;
}

static LLVMValueRef operand_value(LLVMValueRef call, const struct assembly *a, int operand)
{
	int argument = operand < 0 ? -1 : a->operand[operand].argument;

	return argument < 0 ? NULL : LLVMGetOperand(call, argument);
}

/* How much it accesses: by the mnemonic, the register it moves, or the operand's own type. */
static LLVMValueRef effect_size(struct instrumenter *in, LLVMValueRef call,
				const struct assembly *a, const struct assembly_effect *effect)
{
	LLVMValueRef value = operand_value(call, a, effect->width_of);

	if (effect->size)
		return LLVMConstInt(in->i64, effect->size, false);
	if (effect->through_register)
		return value ? access_size(in, LLVMTypeOf(value)) : LLVMConstInt(in->i64, 8, false);
	return access_size(in, operand_type(in, call, a->operand[effect->operand].argument));
}

/* Fills in the access that an effect describes; false if its address cannot be known. */
static bool make_access(struct instrumenter *in, LLVMValueRef call, const struct assembly *a,
			const struct assembly_effect *effect, struct access *access)
{
	LLVMValueRef value = operand_value(call, a, effect->operand), pointer;

	if (!value)
		return false;
	instrument_before(in, call);
	pointer = as_pointer(in, value);
	if (!pointer)
		return false;
	if (effect->displacement) {
		LLVMValueRef offset = LLVMConstInt(in->i64, effect->displacement, true);

		pointer = LLVMBuildGEP2(in->builder, in->i8, pointer, &offset, 1, "");
	}
	*access = (struct access){
		.instruction = call,
		.pointer = pointer,
		.base = access_base(pointer),
		.size = effect_size(in, call, a, effect),
		.flags = effect->flags,
	};
	return true;
}

static void unknown(struct instrumenter *in, LLVMValueRef call, const char *code, size_t length)
{
	char quoted[200], *text;
	LLVMValueRef pointer = NULL;

	snprintf(quoted, sizeof(quoted), "inline assembly not understood: %.*s", (int)length, code);
	text = instrument_describe(in, call, quoted);
	instrument_before(in, call);
	for (unsigned i = 0; i < LLVMGetNumArgOperands(call) && !pointer; i++)
		pointer = as_pointer(in, LLVMGetOperand(call, i));
	helper_unknown(in, text, pointer);
	free(text);
}

/* rep stos and rep movs: the whole range, as one lane. */
static bool string_effect(struct instrumenter *in, LLVMValueRef call, const struct assembly *a,
			  const struct assembly_effect *effect)
{
	LLVMValueRef one = LLVMConstInt(in->i64, 1, false), size;
	struct access access;

	if (!make_access(in, call, a, effect, &access))
		return false;
	size = LLVMConstInt(in->i64, effect->size, false);
	if (effect->detail) {
		int counter = -1;
		LLVMValueRef count;

		for (unsigned i = 0; i < a->operands; i++)
			if (a->operand[i].reg == 'c' && a->operand[i].argument >= 0)
				counter = i;
		count = operand_value(call, a, counter);
		if (!count || LLVMGetTypeKind(LLVMTypeOf(count)) != LLVMIntegerTypeKind)
			return false;
		if (LLVMTypeOf(count) != in->i64)
			count = LLVMBuildZExt(in->builder, count, in->i64, "");
		size = LLVMBuildMul(in->builder, count, size, "");
	}
	if (effect->kind == EFFECT_STRING_LOAD)
		access.flags |= PERDURE_READ;
	helper_lanes(in, &access, size, one);
	return true;
}

static void flush_or_fence(struct instrumenter *in, LLVMValueRef call, const struct assembly *a,
			   const struct assembly_effect *effect, LLVMValueRef before)
{
	struct access access = { 0 };

	if (effect->kind == EFFECT_FLUSH && !make_access(in, call, a, effect, &access))
		return;
	instrument_before(in, call); /* for its place in the source */
	LLVMPositionBuilderBefore(in->builder, before);
	if (effect->kind == EFFECT_FLUSH)
		helper_flush(in, access.pointer, effect->detail);
	else
		helper_fence(in, effect->detail);
}

static bool apply(struct instrumenter *in, LLVMValueRef call, const struct assembly *a,
		  const struct assembly_effect *effect)
{
	struct access access;

	switch (effect->kind) {
	case EFFECT_STRING_STORE:
	case EFFECT_STRING_LOAD:
		return string_effect(in, call, a, effect);
	case EFFECT_LOAD:
		if (!make_access(in, call, a, effect, &access))
			return false;
		if (!access_is_ordinary(access.base))
			helper_load(in, &access);
		return true;
	case EFFECT_STORE:
		if (!make_access(in, call, a, effect, &access))
			return false;
		if (access_is_ordinary(access.base))
			return true;
		helper_write_begin(in, &access);
		helper_write_end(in, &access, NULL);
		return true;
	default:
		return true;
	}
}

static bool is_order(const struct assembly_effect *effect)
{
	return effect->kind == EFFECT_FLUSH || effect->kind == EFFECT_FENCE;
}

static void apply_all(struct instrumenter *in, LLVMValueRef call, struct assembly *a)
{
	LLVMValueRef next = LLVMGetNextInstruction(call);
	bool stores = false;

	for (unsigned i = 0; i < a->effects; i++) {
		stores |= a->effect[i].kind == EFFECT_STORE ||
			  a->effect[i].kind == EFFECT_STRING_STORE;
		if (!is_order(&a->effect[i]) && !apply(in, call, a, &a->effect[i]))
			a->unknown = true;
	}
	/* Flushes and fences come after the stores of the same statement, whose hooks surround it.
	 */
	for (unsigned i = 0; i < a->effects; i++)
		if (is_order(&a->effect[i]))
			flush_or_fence(in, call, a, &a->effect[i], stores ? next : call);
}

/* Valgrind's client requests go to the runtime, which understands pmemcheck's. */
static bool client_request(struct instrumenter *in, LLVMValueRef call, const struct assembly *a)
{
	LLVMTypeRef types[2] = { in->i64, in->pointer };
	LLVMTypeRef type = LLVMFunctionType(in->i64, types, 2, false);
	LLVMValueRef function, arguments[2] = { NULL };

	for (unsigned i = 0; i < a->operands; i++) {
		if (a->operand[i].output)
			continue;
		if (a->operand[i].reg == 'a')
			arguments[1] = operand_value(call, a, i);
		else if (a->operand[i].tied >= 0)
			arguments[0] = operand_value(call, a, i);
	}
	if (!arguments[0] || !arguments[1] || LLVMTypeOf(call) != in->i64 ||
	    LLVMTypeOf(arguments[0]) != in->i64)
		return false;
	instrument_before(in, call);
	arguments[1] = as_pointer(in, arguments[1]);
	function = LLVMGetNamedFunction(in->module, "__perdure_client_request");
	if (!function)
		function = LLVMAddFunction(in->module, "__perdure_client_request", type);
	LLVMReplaceAllUsesWith(call, LLVMBuildCall2(in->builder, type, function, arguments, 2, ""));
	LLVMInstructionEraseFromParent(call);
	return true;
}

void instrument_assembly(struct instrumenter *in, LLVMValueRef call)
{
	LLVMValueRef callee = LLVMGetCalledValue(call);
	size_t length, constraints_length;
	const char *text = LLVMGetInlineAsmAsmString(callee, &length);
	const char *constraints = LLVMGetInlineAsmConstraintString(callee, &constraints_length);
	struct assembly a;

	assembly_parse(text, length, constraints, constraints_length, &a);
	if (a.client_request && LLVMIsACallInst(call) && client_request(in, call, &a))
		return;
	if (!LLVMIsACallInst(call)) { /* asm goto: nothing can be put behind it */
		if (a.unknown || a.effects)
			unknown(in, call, text, length);
		return;
	}
	if (a.only_flush && LLVMGetTypeKind(LLVMTypeOf(call)) == LLVMVoidTypeKind) {
		flush_or_fence(in, call, &a, &a.effect[0], call);
		LLVMInstructionEraseFromParent(call);
		return;
	}
	if (a.has_label) { /* a second copy would define it twice */
		unsigned kind = LLVMGetEnumAttributeKindForName("noduplicate", 11);

		LLVMAddCallSiteAttribute(call, LLVMAttributeFunctionIndex,
					 LLVMCreateEnumAttribute(in->context, kind, 0));
	}
	if (a.pauses || a.locked || a.clobbers_memory) {
		instrument_before(in, call);
		helper_visible(in, NULL, a.pauses ? 0 : PERDURE_ASM | (a.locked ? PERDURE_RMW : 0));
	}
	if (a.locked) {
		instrument_before(in, call);
		helper_locked(in);
	}
	apply_all(in, call, &a);
	if (a.unknown)
		unknown(in, call, text, length);
}
