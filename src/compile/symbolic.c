/* SPDX-License-Identifier: BSD-3-Clause */
#include "compile/symbolic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compile/order.h"
#include "compile/symbolic_values.h"

/* ---- arithmetic ---- */

static const uint8_t operations[] = {
	[LLVMAdd] = SYMBOLIC_ADD,   [LLVMSub] = SYMBOLIC_SUB,   [LLVMMul] = SYMBOLIC_MUL,
	[LLVMUDiv] = SYMBOLIC_UDIV, [LLVMSDiv] = SYMBOLIC_SDIV, [LLVMURem] = SYMBOLIC_UREM,
	[LLVMSRem] = SYMBOLIC_SREM, [LLVMShl] = SYMBOLIC_SHL,   [LLVMLShr] = SYMBOLIC_LSHR,
	[LLVMAShr] = SYMBOLIC_ASHR, [LLVMAnd] = SYMBOLIC_AND,   [LLVMOr] = SYMBOLIC_OR,
	[LLVMXor] = SYMBOLIC_XOR,
};

static void instrument_binary(struct instrumenter *in, struct values *values, LLVMValueRef i)
{
	LLVMOpcode opcode = LLVMGetInstructionOpcode(i);
	LLVMValueRef a = LLVMGetOperand(i, 0), b = LLVMGetOperand(i, 1), result;

	if (!values_is_scalar(LLVMTypeOf(i))) {
		values_fix_all(in, values, i);
		return;
	}
	instrument_before(in, i);
	result = values_binary(in, values, operations[opcode], values_width(LLVMTypeOf(i)), a, b);
	if (LLVMIsNull(result))
		return;
	values_put(values, i, 0, result);
	if (opcode != LLVMUDiv && opcode != LLVMSDiv && opcode != LLVMURem && opcode != LLVMSRem)
		return;
	/* The processor does it as well, and must not be given what means nothing. */
	values_resolve(in, values, i, 0, "__perdure_sym_now", values_loss(in, 0));
	values_resolve(in, values, i, 1, "__perdure_sym_divisor", values_loss(in, 0));
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

	if (!values_is_scalar(LLVMTypeOf(a))) {
		values_fix_all(in, values, i);
		return;
	}
	instrument_before(in, i);
	values_put(values, i, 0,
		   values_binary(in, values, by[predicate].op, values_width(LLVMTypeOf(a)), a, b));
}

static void instrument_cast(struct instrumenter *in, struct values *values, LLVMValueRef i)
{
	LLVMValueRef a = LLVMGetOperand(i, 0), shadow = values_shadow(in, values, a);
	unsigned from, to;
	bool wide = LLVMGetInstructionOpcode(i) != LLVMSExt;

	if (!values_is_scalar(LLVMTypeOf(a)) || !values_is_scalar(LLVMTypeOf(i))) {
		values_fix_all(in, values, i);
		return;
	}
	from = values_width(LLVMTypeOf(a));
	to = values_width(LLVMTypeOf(i));
	instrument_before(in, i);
	if (from != to)
		shadow = symbolic_cast(in,
				       to < from ? SYMBOLIC_TRUNC
				       : wide    ? SYMBOLIC_ZEXT
						 : SYMBOLIC_SEXT,
				       from, to, shadow);
	values_put(values, i, 0, shadow);
}

/* Of floating point and structures: which one it is, is decided. */
static void select_other(struct instrumenter *in, struct values *values, LLVMValueRef i)
{
	LLVMValueRef condition = LLVMGetOperand(i, 0), a = LLVMGetOperand(i, 1),
		     b = LLVMGetOperand(i, 2);

	condition =
		symbolic_branch(in, values_shadow(in, values, condition), condition, values->site);
	LLVMSetOperand(i, 0, condition);
	for (unsigned leaf = 0; leaf < values_leaves(LLVMTypeOf(i)); leaf++)
		values_put(values, i, leaf,
			   LLVMBuildSelect(in->builder, condition, values_leaf(in, values, a, leaf),
					   values_leaf(in, values, b, leaf), ""));
}

static void instrument_select(struct instrumenter *in, struct values *values, LLVMValueRef i)
{
	LLVMValueRef condition = LLVMGetOperand(i, 0), a = LLVMGetOperand(i, 1),
		     b = LLVMGetOperand(i, 2);

	if (!values_is_scalar(LLVMTypeOf(condition))) {
		values_fix_all(in, values, i);
		return;
	}
	instrument_before(in, i);
	if (values_is_scalar(LLVMTypeOf(i)))
		values_put(values, i, 0,
			   symbolic_select(in, values_width(LLVMTypeOf(i)),
					   values_shadow(in, values, condition), condition,
					   values_shadow(in, values, a), symbolic_word(in, a),
					   values_shadow(in, values, b), symbolic_word(in, b)));
	else
		select_other(in, values, i);
}

/* ---- where to go ---- */

static void instrument_branch(struct instrumenter *in, struct values *values, LLVMValueRef branch)
{
	LLVMValueRef condition, shadow;

	if (!LLVMIsConditional(branch))
		return;
	condition = LLVMGetCondition(branch);
	shadow = values_shadow(in, values, condition);
	if (!LLVMIsNull(shadow)) {
		instrument_before(in, branch);
		LLVMSetCondition(branch, symbolic_branch(in, shadow, condition, values->site));
	}
	values->site += order_sites(branch);
}

static void instrument_switch(struct instrumenter *in, struct values *values, LLVMValueRef i)
{
	unsigned count = LLVMGetNumSuccessors(i) - 1;
	LLVMValueRef value = LLVMGetOperand(i, 0), shadow = values_shadow(in, values, value);
	LLVMValueRef *list, cases, content;

	values->site += order_sites(i);
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
		       symbolic_switch(in, shadow, value, cases, count, values->site - count));
}

static LLVMValueRef return_structure(struct instrumenter *in, struct values *values,
				     LLVMValueRef whole)
{
	LLVMValueRef result = whole;

	for (unsigned leaf = 0; leaf < values_leaves(LLVMTypeOf(whole)); leaf++) {
		LLVMValueRef shadow = values_leaf(in, values, whole, leaf), part;

		if (LLVMIsNull(shadow))
			continue;
		part = LLVMBuildExtractValue(in->builder, whole, leaf, "");
		part = symbolic_return(in, in->function, leaf, shadow, part);
		result = LLVMBuildInsertValue(in->builder, result, part, leaf, "");
	}
	return result;
}

static void instrument_return(struct instrumenter *in, struct values *values, LLVMValueRef i)
{
	LLVMValueRef result = LLVMGetNumOperands(i) ? LLVMGetOperand(i, 0) : NULL;

	if (!result ||
	    (LLVMIsACallInst(result) && LLVMGetTailCallKind(result) == LLVMTailCallKindMustTail))
		return;
	instrument_before(in, i);
	if (values_is_scalar(LLVMTypeOf(result)))
		LLVMSetOperand(i, 0,
			       symbolic_return(in, in->function, 0,
					       values_shadow(in, values, result), result));
	else
		LLVMSetOperand(i, 0, return_structure(in, values, result));
}

/* ---- structures in registers ---- */

static void instrument_insert(struct instrumenter *in, struct values *values, LLVMValueRef i)
{
	LLVMValueRef whole = LLVMGetOperand(i, 0), part = LLVMGetOperand(i, 1);
	unsigned leaves = values_leaves(LLVMTypeOf(i)), at = LLVMGetIndices(i)[0];

	if (!leaves || LLVMGetNumIndices(i) != 1) {
		values_fix_all(in, values, i);
		return;
	}
	for (unsigned leaf = 0; leaf < leaves; leaf++)
		values_put(values, i, leaf,
			   leaf == at ? values_shadow(in, values, part)
				      : values_leaf(in, values, whole, leaf));
}

static void instrument_extract(struct instrumenter *in, struct values *values, LLVMValueRef i)
{
	LLVMValueRef whole = LLVMGetOperand(i, 0);

	if (values_leaves(LLVMTypeOf(whole)) && LLVMGetNumIndices(i) == 1)
		values_put(values, i, 0, values_leaf(in, values, whole, LLVMGetIndices(i)[0]));
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
		values_put(values, i, 0, values_shadow(in, values, LLVMGetOperand(i, 0)));
		break;
	case LLVMSelect:
		instrument_select(in, values, i);
		break;
	case LLVMGetElementPtr:
		symbolic_on_gep(in, values, i);
		break;
	case LLVMExtractValue:
		instrument_extract(in, values, i);
		break;
	case LLVMInsertValue:
		instrument_insert(in, values, i);
		break;
	case LLVMLoad:
		symbolic_on_load(in, values, i);
		break;
	case LLVMStore:
		symbolic_on_store(in, values, i);
		break;
	case LLVMAtomicRMW:
	case LLVMAtomicCmpXchg:
		symbolic_on_atomic(in, values, i);
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
		symbolic_on_call(in, values, i);
		break;
	case LLVMAlloca: /* a size */
		values_resolve(in, values, i, 0, "__perdure_sym_each",
			       values_loss(in, SYMBOLIC_LOST_SIZE));
		break;
	default:
		values_fix_all(in, values, i);
	}
}

static void add_phis(struct instrumenter *in, struct values *values, const struct order *order)
{
	for (size_t b = 0; b < order->count; b++)
		for (LLVMValueRef i = LLVMGetFirstInstruction(order->list[b]);
		     i && LLVMIsAPHINode(i); i = LLVMGetNextInstruction(i))
			for (unsigned leaf = 0; leaf < values_leaves(LLVMTypeOf(i)); leaf++) {
				LLVMPositionBuilderBefore(in->builder, i);
				LLVMSetCurrentDebugLocation2(in->builder, NULL);
				values_put(values, i, leaf, LLVMBuildPhi(in->builder, in->i32, ""));
			}
}

static void fill_phi(struct instrumenter *in, struct values *values, LLVMValueRef phi,
		     unsigned leaf)
{
	LLVMValueRef shadow = values_leaf(in, values, phi, leaf);

	if (LLVMIsNull(shadow))
		return; /* one of those that were added */
	for (unsigned n = 0; n < LLVMCountIncoming(phi); n++) {
		LLVMBasicBlockRef from = LLVMGetIncomingBlock(phi, n);
		LLVMValueRef value = values_leaf(in, values, LLVMGetIncomingValue(phi, n), leaf);

		LLVMAddIncoming(shadow, &value, &from, 1);
	}
}

static void fill_phis(struct instrumenter *in, struct values *values, const struct order *order)
{
	for (size_t b = 0; b < order->count; b++)
		for (LLVMValueRef i = LLVMGetFirstInstruction(order->list[b]);
		     i && LLVMIsAPHINode(i); i = LLVMGetNextInstruction(i))
			for (unsigned leaf = 0; leaf < values_leaves(LLVMTypeOf(i)); leaf++)
				fill_phi(in, values, i, leaf);
}

static LLVMValueRef first_behind_allocas(LLVMValueRef function)
{
	LLVMValueRef at = LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(function));

	while (LLVMIsAAllocaInst(at))
		at = LLVMGetNextInstruction(at);
	return at;
}

/* What was there before has nothing to do with a new variable. */
static void clear_variable(struct instrumenter *in, LLVMValueRef variable)
{
	LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(in->function);
	uint64_t size = LLVMABISizeOfType(in->layout, LLVMGetAllocatedType(variable));
	LLVMValueRef count = LLVMGetOperand(variable, 0), at, bytes;

	if (LLVMGetInstructionParent(variable) == entry && LLVMIsConstant(count))
		instrument_before(in, first_behind_allocas(in->function));
	else
		instrument_after(in, variable);
	at = symbolic_word(in, variable);
	bytes = LLVMBuildMul(in->builder, symbolic_word(in, count),
			     LLVMConstInt(in->i64, size, false), "");
	symbolic_if_touched(in, "__perdure_sym_clear", at, at, bytes);
}

static void take_parameters(struct instrumenter *in, struct values *values, LLVMValueRef function)
{
	bool variable = LLVMIsFunctionVarArg(LLVMGlobalGetValueType(function));
	LLVMValueRef shadows[SYMBOLIC_ARGUMENTS];
	unsigned count = LLVMCountParams(function), taken = 0;

	if (!count) /* not even of those that are not named */
		return;
	instrument_before(in, first_behind_allocas(function));
	if (variable)
		values->variable = symbolic_take_variable(in, function);
	symbolic_take(in, function, shadows,
		      count < SYMBOLIC_ARGUMENTS ? count : SYMBOLIC_ARGUMENTS);
	for (unsigned i = 0; i < count && taken < SYMBOLIC_ARGUMENTS; i++) {
		bool scalar = values_is_scalar(LLVMTypeOf(LLVMGetParam(function, i)));

		if (scalar)
			values_put(values, LLVMGetParam(function, i), 0, shadows[taken]);
		taken += scalar || !variable; /* as in pass_arguments */
	}
}

/* Branches are counted in this order by the static analysis, too. */
static void instrument_function(struct instrumenter *in, LLVMValueRef function, uint64_t *site)
{
	struct values values = { .site = *site };
	struct order order;
	struct instructions all = { 0 };

	in->function = function;
	order_blocks(function, &order);
	for (size_t b = 0; b < order.count; b++)
		instrument_collect(&all, order.list[b]);
	take_parameters(in, &values, function);
	for (size_t i = 0; i < all.count; i++)
		if (LLVMIsAAllocaInst(all.list[i]))
			clear_variable(in, all.list[i]);
	add_phis(in, &values, &order);
	for (size_t i = 0; i < all.count; i++)
		instrument_instruction(in, &values, all.list[i]);
	fill_phis(in, &values, &order);
	*site = values.site;
	free(values.slot);
	free(order.list);
	free(all.list);
}

/* ---- the module ---- */

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

/*
 * A function that touches no memory, as its declaration says, does now: it is told of its arguments
 * and tells of its result in memory.
 */
static void forget_purity(LLVMValueRef function)
{
	unsigned memory = LLVMGetEnumAttributeKindForName("memory", 6);

	if (LLVMGetIntrinsicID(function))
		return;
	LLVMRemoveEnumAttributeAtIndex(function, LLVMAttributeFunctionIndex, memory);
	for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(function); b;
	     b = LLVMGetNextBasicBlock(b))
		for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i))
			if ((LLVMIsACallInst(i) || LLVMIsAInvokeInst(i)) &&
			    !(LLVMIsAFunction(LLVMGetCalledValue(i)) &&
			      LLVMGetIntrinsicID(LLVMGetCalledValue(i))))
				LLVMRemoveCallSiteEnumAttribute(i, LLVMAttributeFunctionIndex,
								memory);
}

static bool *find_callbacks(LLVMModuleRef module, LLVMValueRef last)
{
	bool *result = NULL;
	size_t count = 0;

	for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
		result = realloc(result, count + 1);
		if (!result)
			abort();
		result[count++] = symbolic_is_callback(f);
		if (f == last)
			break;
	}
	return result;
}

void symbolic_instrument(struct instrumenter *in)
{
	LLVMValueRef last = LLVMGetLastFunction(in->module), *list = NULL;
	uint64_t site = order_first_site(in->module);
	unsigned count = 0, functions = 0;
	bool *callbacks;

	callbacks = find_callbacks(in->module, last);
	for (LLVMValueRef f = LLVMGetFirstFunction(in->module); f; f = LLVMGetNextFunction(f)) {
		forget_purity(f);
		in->is_callback = callbacks[functions++];
		if (order_is_wanted(f)) {
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
	free(callbacks);
	free(list);
}
