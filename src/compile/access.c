/* SPDX-License-Identifier: BSD-3-Clause */
#include "compile/instrument.h"

#include <string.h>

enum { STRIP_STEPS = 32, PHI_DEPTH = 3, PHI_INPUTS = 8 };

static bool is_opcode(LLVMValueRef value, LLVMOpcode opcode)
{
	if (LLVMIsAInstruction(value))
		return LLVMGetInstructionOpcode(value) == opcode;
	return LLVMIsAConstantExpr(value) && LLVMGetConstOpcode(value) == opcode;
}

static LLVMValueRef strip(LLVMValueRef pointer, int depth);

/*
 * A pointer that walks through one object in a loop: all inputs of the phi but one come from the
 * phi itself. The other one dominates the phi (it must be computed before the first arrival).
 */
static LLVMValueRef phi_start(LLVMValueRef phi, int depth)
{
	unsigned count = LLVMCountIncoming(phi);
	LLVMValueRef start = NULL;

	if (depth == 0 || count > PHI_INPUTS)
		return phi;
	for (unsigned i = 0; i < count; i++) {
		LLVMValueRef input = LLVMGetIncomingValue(phi, i), origin = input;

		for (int step = 0; step < STRIP_STEPS && is_opcode(origin, LLVMGetElementPtr) &&
				   LLVMIsInBounds(origin);
		     step++)
			origin = LLVMGetOperand(origin, 0);
		if (origin == phi)
			continue;
		if (start && start != input)
			return phi;
		start = input;
	}
	return start ? strip(start, depth - 1) : phi;
}

static LLVMValueRef strip(LLVMValueRef pointer, int depth)
{
	for (int step = 0; step < STRIP_STEPS; step++) {
		if (is_opcode(pointer, LLVMGetElementPtr) && LLVMIsInBounds(pointer))
			pointer = LLVMGetOperand(pointer, 0);
		else if (is_opcode(pointer, LLVMBitCast))
			pointer = LLVMGetOperand(pointer, 0);
		else if (LLVMIsAPHINode(pointer))
			return phi_start(pointer, depth);
		else
			break;
	}
	return pointer;
}

LLVMValueRef access_base(LLVMValueRef pointer)
{
	return strip(pointer, PHI_DEPTH);
}

static bool is_byval_argument(LLVMValueRef base)
{
	unsigned kind = LLVMGetEnumAttributeKindForName("byval", 5);
	LLVMValueRef function;

	if (!LLVMIsAArgument(base))
		return false;
	function = LLVMGetParamParent(base);
	for (unsigned i = 0; i < LLVMCountParams(function); i++)
		if (LLVMGetParam(function, i) == base)
			return LLVMGetEnumAttributeAtIndex(function, i + 1, kind) != NULL;
	return false;
}

bool access_is_stack(LLVMValueRef base)
{
	return LLVMIsAAllocaInst(base) || is_byval_argument(base);
}

static bool is_thread_local_address(LLVMValueRef base)
{
	LLVMValueRef callee = LLVMIsACallInst(base) ? LLVMGetCalledValue(base) : NULL;
	size_t length;

	return callee && LLVMIsAFunction(callee) && LLVMGetIntrinsicID(callee) &&
	       strncmp(LLVMGetValueName2(callee, &length), "llvm.threadlocal.address", 24) == 0;
}

bool access_is_ordinary(LLVMValueRef base)
{
	return access_is_stack(base) || LLVMIsAGlobalValue(base) || LLVMIsNull(base) ||
	       LLVMIsUndef(base) || LLVMIsPoison(base) || is_thread_local_address(base) ||
	       LLVMGetPointerAddressSpace(LLVMTypeOf(base)) != 0;
}

LLVMValueRef access_size(struct instrumenter *in, LLVMTypeRef type)
{
	return LLVMConstInt(in->i64, LLVMStoreSizeOfType(in->layout, type), false);
}
