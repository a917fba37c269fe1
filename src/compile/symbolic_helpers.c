/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where nothing is symbolic, an operation costs a test of its operands' numbers, a load or store
 * one look at a table. As in helpers.c, each test is a small function that is inlined.
 */
#include "compile/symbolic.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { PRESERVE_MOST = 14, PARAMETERS = SYMBOLIC_ARGUMENTS + 1 };

static LLVMValueRef number(struct instrumenter *in, uint32_t value)
{
	return LLVMConstInt(in->i32, value, false);
}

static LLVMValueRef word(struct instrumenter *in, uint64_t value)
{
	return LLVMConstInt(in->i64, value, false);
}

LLVMValueRef symbolic_word(struct instrumenter *in, LLVMValueRef value)
{
	LLVMTypeRef type = LLVMTypeOf(value);

	if (LLVMGetTypeKind(type) == LLVMPointerTypeKind)
		return LLVMBuildPtrToInt(in->builder, value, in->i64, "");
	return LLVMGetIntTypeWidth(type) == 64 ? value
					       : LLVMBuildZExt(in->builder, value, in->i64, "");
}

LLVMValueRef symbolic_unword(struct instrumenter *in, LLVMValueRef value, LLVMTypeRef type)
{
	if (LLVMGetTypeKind(type) == LLVMPointerTypeKind)
		return LLVMBuildIntToPtr(in->builder, value, type, "");
	return LLVMGetIntTypeWidth(type) == 64 ? value
					       : LLVMBuildTrunc(in->builder, value, type, "");
}

static void add_attribute(struct instrumenter *in, LLVMValueRef function, const char *name)
{
	unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));

	LLVMAddAttributeAtIndex(function, LLVMAttributeFunctionIndex,
				LLVMCreateEnumAttribute(in->context, kind, 0));
}

LLVMValueRef symbolic_call(struct instrumenter *in, const char *hook, LLVMTypeRef result,
			   LLVMValueRef *arguments, unsigned count)
{
	LLVMValueRef function = LLVMGetNamedFunction(in->module, hook), call;
	LLVMTypeRef types[8], type;

	for (unsigned i = 0; i < count; i++)
		types[i] = LLVMTypeOf(arguments[i]);
	type = LLVMFunctionType(result, types, count, false);
	if (!function) {
		function = LLVMAddFunction(in->module, hook, type);
		LLVMSetFunctionCallConv(function, PRESERVE_MOST);
		add_attribute(in, function, "nounwind");
		add_attribute(in, function, "cold");
	}
	call = LLVMBuildCall2(in->builder, type, function, arguments, count, "");
	LLVMSetInstructionCallConv(call, PRESERVE_MOST);
	return call;
}

/* ---- building a test ---- */

struct test {
	LLVMValueRef function;
	LLVMBasicBlockRef entry, fast, slow;
	LLVMBuilderRef outer;
};

/* The function of this name if it exists; otherwise null, and its entry is to be filled. */
static LLVMValueRef begin(struct instrumenter *in, struct test *test, const char *name,
			  LLVMTypeRef result, LLVMTypeRef *types, unsigned count)
{
	LLVMValueRef function = LLVMGetNamedFunction(in->module, name);

	if (function)
		return function;
	function = LLVMAddFunction(in->module, name, LLVMFunctionType(result, types, count, false));
	LLVMSetLinkage(function, LLVMPrivateLinkage);
	add_attribute(in, function, "alwaysinline");
	add_attribute(in, function, "nounwind");
	test->function = function;
	test->entry = LLVMAppendBasicBlockInContext(in->context, function, "");
	test->fast = LLVMAppendBasicBlockInContext(in->context, function, "");
	test->slow = LLVMAppendBasicBlockInContext(in->context, function, "");
	test->outer = in->builder;
	in->builder = LLVMCreateBuilderInContext(in->context);
	LLVMPositionBuilderAtEnd(in->builder, test->entry);
	return NULL;
}

static LLVMValueRef parameter(const struct test *test, unsigned i)
{
	return LLVMGetParam(test->function, i);
}

/* Slow if the condition holds, which is rare. Returns `fast` otherwise; the builder is at slow. */
static void slow_if(struct instrumenter *in, struct test *test, LLVMValueRef condition,
		    LLVMValueRef fast)
{
	LLVMMetadataRef parts[3] = {
		LLVMMDStringInContext2(in->context, "branch_weights", 14),
		LLVMValueAsMetadata(number(in, 1)),
		LLVMValueAsMetadata(number(in, 100000)),
	};
	LLVMValueRef branch = LLVMBuildCondBr(in->builder, condition, test->slow, test->fast);

	LLVMSetMetadata(
		branch, LLVMGetMDKindIDInContext(in->context, "prof", 4),
		LLVMMetadataAsValue(in->context, LLVMMDNodeInContext2(in->context, parts, 3)));
	LLVMPositionBuilderAtEnd(in->builder, test->fast);
	if (fast)
		LLVMBuildRet(in->builder, fast);
	else
		LLVMBuildRetVoid(in->builder);
	LLVMPositionBuilderAtEnd(in->builder, test->slow);
}

static LLVMValueRef end(struct instrumenter *in, struct test *test, LLVMValueRef result)
{
	if (result)
		LLVMBuildRet(in->builder, result);
	else
		LLVMBuildRetVoid(in->builder);
	LLVMDisposeBuilder(in->builder);
	in->builder = test->outer;
	return test->function;
}

static LLVMValueRef use(struct instrumenter *in, LLVMValueRef test, LLVMValueRef *arguments,
			unsigned count)
{
	return LLVMBuildCall2(in->builder, LLVMGlobalGetValueType(test), test, arguments, count,
			      "");
}

static LLVMValueRef is_set(struct instrumenter *in, LLVMValueRef s)
{
	return LLVMBuildICmp(in->builder, LLVMIntNE, s, LLVMConstNull(LLVMTypeOf(s)), "");
}

/* ---- values ---- */

LLVMValueRef symbolic_binary(struct instrumenter *in, enum symbolic_op op, unsigned width,
			     LLVMValueRef s, LLVMValueRef a, LLVMValueRef t, LLVMValueRef b)
{
	LLVMTypeRef types[5] = { in->i32, in->i64, in->i32, in->i64, in->i32 };
	LLVMValueRef arguments[5] = { s, a, t, b, number(in, (unsigned)op << 8 | width) };
	LLVMValueRef function;
	struct test test;

	if (LLVMIsNull(s) && LLVMIsNull(t))
		return number(in, 0);
	function = begin(in, &test, "__perdure.sym.binary", in->i32, types, 5);
	if (!function) {
		LLVMValueRef hook[5] = { parameter(&test, 4), parameter(&test, 0),
					 parameter(&test, 1), parameter(&test, 2),
					 parameter(&test, 3) };

		slow_if(in, &test, is_set(in, LLVMBuildOr(in->builder, hook[1], hook[3], "")),
			number(in, 0));
		function =
			end(in, &test, symbolic_call(in, "__perdure_sym_binary", in->i32, hook, 5));
	}
	return use(in, function, arguments, 5);
}

LLVMValueRef symbolic_cast(struct instrumenter *in, enum symbolic_op op, unsigned from, unsigned to,
			   LLVMValueRef s)
{
	LLVMTypeRef types[2] = { in->i32, in->i32 };
	LLVMValueRef arguments[2] = { s, number(in, (unsigned)op << 16 | from << 8 | to) };
	LLVMValueRef function;
	struct test test;

	if (LLVMIsNull(s))
		return s;
	function = begin(in, &test, "__perdure.sym.cast", in->i32, types, 2);
	if (!function) {
		LLVMValueRef hook[2] = { parameter(&test, 1), parameter(&test, 0) };

		slow_if(in, &test, is_set(in, hook[1]), number(in, 0));
		function =
			end(in, &test, symbolic_call(in, "__perdure_sym_cast", in->i32, hook, 2));
	}
	return use(in, function, arguments, 2);
}

/* Without a symbolic condition it is one or the other. */
LLVMValueRef symbolic_select(struct instrumenter *in, unsigned width, LLVMValueRef s,
			     LLVMValueRef condition, LLVMValueRef t, LLVMValueRef a, LLVMValueRef u,
			     LLVMValueRef b)
{
	LLVMTypeRef types[7] = { in->i32, in->i1, in->i32, in->i64, in->i32, in->i64, in->i32 };
	LLVMValueRef arguments[7] = { s, condition, t, a, u, b, number(in, width) };
	LLVMValueRef function;
	struct test test;

	if (LLVMIsNull(s))
		return LLVMIsNull(t) && LLVMIsNull(u)
			       ? t
			       : LLVMBuildSelect(in->builder, condition, t, u, "");
	function = begin(in, &test, "__perdure.sym.select", in->i32, types, 7);
	if (!function) {
		LLVMValueRef hook[6] = { parameter(&test, 6), parameter(&test, 0),
					 parameter(&test, 2), parameter(&test, 3),
					 parameter(&test, 4), parameter(&test, 5) };
		LLVMValueRef fast =
			LLVMBuildSelect(in->builder, parameter(&test, 1), hook[2], hook[4], "");

		slow_if(in, &test, is_set(in, hook[1]), fast);
		function =
			end(in, &test, symbolic_call(in, "__perdure_sym_select", in->i32, hook, 6));
	}
	return use(in, function, arguments, 7);
}

/* ---- memory ---- */

static LLVMValueRef pages(struct instrumenter *in)
{
	LLVMValueRef global = LLVMGetNamedGlobal(in->module, "__perdure_symbolic_pages");

	return global ? global
		      : LLVMAddGlobal(in->module, LLVMArrayType2(in->i8, SYMBOLIC_PAGES),
				      "__perdure_symbolic_pages");
}

/* Not zero if there may be symbolic bytes in the page of this address. */
static LLVMValueRef flag_at(struct instrumenter *in, LLVMValueRef address)
{
	LLVMValueRef page = LLVMBuildLShr(in->builder, address, word(in, SYMBOLIC_PAGE_SHIFT), "");
	LLVMValueRef index = LLVMBuildAnd(in->builder, page, word(in, SYMBOLIC_PAGES - 1), ""), at;

	at = LLVMBuildGEP2(in->builder, in->i8, pages(in), &index, 1, "");
	return LLVMBuildLoad2(in->builder, in->i8, at, "");
}

/* The first byte decides: pages before symbolic bytes have their flag set as well. */
static LLVMValueRef is_touched(struct instrumenter *in, LLVMValueRef s, LLVMValueRef address)
{
	LLVMValueRef flag = LLVMBuildZExt(in->builder, flag_at(in, address), in->i32, "");

	return is_set(in, LLVMBuildOr(in->builder, flag, s, ""));
}

LLVMValueRef symbolic_load(struct instrumenter *in, LLVMValueRef s, LLVMValueRef pointer,
			   unsigned size)
{
	LLVMTypeRef types[3] = { in->i32, in->i64, in->i32 };
	LLVMValueRef arguments[3] = { s, symbolic_word(in, pointer), number(in, size) };
	LLVMValueRef function;
	struct test test;

	function = begin(in, &test, "__perdure.sym.load", in->i32, types, 3);
	if (!function) {
		LLVMValueRef hook[3] = { parameter(&test, 0), parameter(&test, 1),
					 parameter(&test, 2) };

		slow_if(in, &test, is_touched(in, hook[0], hook[1]), number(in, 0));
		function =
			end(in, &test, symbolic_call(in, "__perdure_sym_load", in->i32, hook, 3));
	}
	return use(in, function, arguments, 3);
}

LLVMValueRef symbolic_store(struct instrumenter *in, LLVMValueRef s, LLVMValueRef pointer,
			    unsigned size, LLVMValueRef t, LLVMValueRef value)
{
	LLVMTypeRef types[5] = { in->i32, in->i64, in->i32, in->i32, in->i64 };
	LLVMValueRef arguments[5] = { s, symbolic_word(in, pointer), number(in, size), t, value };
	LLVMValueRef function;
	struct test test;

	function = begin(in, &test, "__perdure.sym.store", in->i64, types, 5);
	if (!function) {
		LLVMValueRef hook[5] = { parameter(&test, 0), parameter(&test, 1),
					 parameter(&test, 2), parameter(&test, 3),
					 parameter(&test, 4) };
		LLVMValueRef any = LLVMBuildOr(in->builder, hook[0], hook[3], "");

		slow_if(in, &test, is_touched(in, any, hook[1]), hook[4]);
		function =
			end(in, &test, symbolic_call(in, "__perdure_sym_store", in->i64, hook, 5));
	}
	return use(in, function, arguments, 5);
}

void symbolic_if_touched(struct instrumenter *in, const char *hook_name, LLVMValueRef p,
			 LLVMValueRef q, LLVMValueRef n)
{
	LLVMTypeRef types[3] = { in->i64, in->i64, in->i64 };
	LLVMValueRef arguments[3] = { p, q, n }, function;
	struct test test;
	char name[96];

	snprintf(name, sizeof(name), "__perdure.sym.%s", hook_name);
	function = begin(in, &test, name, in->void_type, types, 3);
	if (!function) {
		LLVMValueRef hook[3] = { parameter(&test, 0), parameter(&test, 1),
					 parameter(&test, 2) };
		LLVMValueRef last = LLVMBuildAdd(in->builder, hook[0], hook[2], "");
		LLVMValueRef other = LLVMBuildAdd(in->builder, hook[1], hook[2], "");
		LLVMValueRef flags = LLVMBuildOr(
			in->builder,
			LLVMBuildOr(in->builder, flag_at(in, hook[0]), flag_at(in, hook[1]), ""),
			LLVMBuildOr(in->builder, flag_at(in, last), flag_at(in, other), ""), "");
		LLVMValueRef large = LLVMBuildICmp(in->builder, LLVMIntUGT, hook[2],
						   word(in, 1 << SYMBOLIC_PAGE_SHIFT), "");

		slow_if(in, &test, LLVMBuildOr(in->builder, large, is_set(in, flags), ""), NULL);
		symbolic_call(in, hook_name, in->void_type, hook, 3);
		function = end(in, &test, NULL);
	}
	use(in, function, arguments, 3);
}

/* ---- where values are needed ---- */

LLVMValueRef symbolic_resolve(struct instrumenter *in, const char *hook_name, LLVMValueRef s,
			      LLVMValueRef value, LLVMValueRef argument)
{
	LLVMTypeRef types[3] = { in->i32, in->i64, in->i64 };
	LLVMValueRef arguments[3] = { s, symbolic_word(in, value), argument }, function;
	struct test test;
	char name[96];

	if (LLVMIsNull(s))
		return value;
	snprintf(name, sizeof(name), "__perdure.sym.%s", hook_name);
	function = begin(in, &test, name, in->i64, types, 3);
	if (!function) {
		LLVMValueRef hook[2] = { parameter(&test, 0), parameter(&test, 2) };

		slow_if(in, &test, is_set(in, hook[0]), parameter(&test, 1));
		function = end(in, &test, symbolic_call(in, hook_name, in->i64, hook, 2));
	}
	return symbolic_unword(in, use(in, function, arguments, 3), LLVMTypeOf(value));
}

LLVMValueRef symbolic_branch(struct instrumenter *in, LLVMValueRef s, LLVMValueRef condition,
			     uint64_t site)
{
	return symbolic_resolve(in, "__perdure_sym_branch", s, condition, word(in, site));
}

LLVMValueRef symbolic_switch(struct instrumenter *in, LLVMValueRef s, LLVMValueRef value,
			     LLVMValueRef cases, unsigned count, uint64_t site)
{
	LLVMTypeRef types[5] = { in->i32, in->i64, in->pointer, in->i32, in->i64 };
	LLVMValueRef arguments[5] = { s, symbolic_word(in, value), cases, number(in, count),
				      word(in, site) };
	LLVMValueRef function;
	struct test test;

	if (LLVMIsNull(s))
		return value;
	function = begin(in, &test, "__perdure.sym.switch", in->i64, types, 5);
	if (!function) {
		LLVMValueRef hook[4] = { parameter(&test, 0), parameter(&test, 2),
					 parameter(&test, 3), parameter(&test, 4) };

		slow_if(in, &test, is_set(in, hook[0]), parameter(&test, 1));
		function =
			end(in, &test, symbolic_call(in, "__perdure_sym_switch", in->i64, hook, 4));
	}
	return symbolic_unword(in, use(in, function, arguments, 5), LLVMTypeOf(value));
}

/* ---- calls ---- */

static LLVMValueRef field(struct instrumenter *in, size_t offset)
{
	LLVMValueRef state = LLVMGetNamedGlobal(in->module, "__perdure_symbolic_call");
	LLVMValueRef index = word(in, offset);

	if (!state) {
		state = LLVMAddGlobal(in->module,
				      LLVMArrayType2(in->i8, sizeof(struct symbolic_call)),
				      "__perdure_symbolic_call");
		LLVMSetThreadLocalMode(state, LLVMInitialExecTLSModel);
	}
	return LLVMBuildGEP2(in->builder, in->i8, state, &index, 1, "");
}

void symbolic_pass(struct instrumenter *in, LLVMValueRef callee, LLVMValueRef *s, unsigned count)
{
	LLVMTypeRef types[PARAMETERS] = { in->pointer };
	LLVMValueRef arguments[PARAMETERS] = { callee }, function, any;
	struct test test;
	char name[64];
	bool needed = false;

	for (unsigned i = 0; i < count; i++) {
		needed |= !LLVMIsNull(s[i]);
		types[i + 1] = in->i32;
		arguments[i + 1] = s[i];
	}
	if (!needed)
		return;
	snprintf(name, sizeof(name), "__perdure.sym.pass.%u", count);
	function = begin(in, &test, name, in->void_type, types, count + 1);
	if (!function) {
		any = parameter(&test, 1);
		for (unsigned i = 1; i < count; i++)
			any = LLVMBuildOr(in->builder, any, parameter(&test, i + 1), "");
		slow_if(in, &test, is_set(in, any), NULL);
		LLVMBuildStore(in->builder, parameter(&test, 0),
			       field(in, offsetof(struct symbolic_call, callee)));
		for (unsigned i = 0; i < count; i++)
			LLVMBuildStore(in->builder, parameter(&test, i + 1),
				       field(in, offsetof(struct symbolic_call, argument) + 4 * i));
		function = end(in, &test, NULL);
	}
	use(in, function, arguments, count + 1);
}

/* Is the function the one that was told? Then nobody else is, from now on. */
static LLVMValueRef is_told(struct instrumenter *in, LLVMValueRef function)
{
	LLVMTypeRef types[1] = { in->pointer };
	LLVMValueRef test_function, at, whom;
	struct test test;

	test_function = begin(in, &test, "__perdure.sym.told", in->i1, types, 1);
	if (!test_function) {
		at = field(in, offsetof(struct symbolic_call, callee));
		whom = LLVMBuildLoad2(in->builder, in->pointer, at, "");
		slow_if(in, &test,
			LLVMBuildICmp(in->builder, LLVMIntEQ, whom, parameter(&test, 0), ""),
			LLVMConstInt(in->i1, 0, false));
		LLVMBuildStore(in->builder, LLVMConstNull(in->pointer), at);
		test_function = end(in, &test, LLVMConstInt(in->i1, 1, false));
	}
	return use(in, test_function, &function, 1);
}

static LLVMValueRef argument(struct instrumenter *in, LLVMValueRef told, unsigned i)
{
	LLVMTypeRef types[1] = { in->i1 };
	LLVMValueRef function;
	struct test test;
	char name[64];

	snprintf(name, sizeof(name), "__perdure.sym.argument.%u", i);
	function = begin(in, &test, name, in->i32, types, 1);
	if (!function) {
		slow_if(in, &test, parameter(&test, 0), number(in, 0));
		function = end(
			in, &test,
			LLVMBuildLoad2(in->builder, in->i32,
				       field(in, offsetof(struct symbolic_call, argument) + 4 * i),
				       ""));
	}
	return use(in, function, &told, 1);
}

void symbolic_take(struct instrumenter *in, LLVMValueRef function, LLVMValueRef *s, unsigned count)
{
	LLVMValueRef told = is_told(in, function);

	for (unsigned i = 0; i < count; i++)
		s[i] = argument(in, told, i);
}

LLVMValueRef symbolic_take_variable(struct instrumenter *in, LLVMValueRef function)
{
	LLVMValueRef arguments[2] = { function, NULL };

	arguments[1] = LLVMBuildAlloca(
		in->builder, LLVMArrayType2(in->i64, sizeof(struct symbolic_variable) / 8), "");
	symbolic_call(in, "__perdure_sym_take_variable", in->void_type, arguments, 2);
	return arguments[1];
}

static size_t result_offset(unsigned leaf)
{
	return offsetof(struct symbolic_call, result) + 4ul * leaf;
}

/* Whoever has its address may call it, also code without expressions. */
bool symbolic_is_callback(LLVMValueRef function)
{
	for (LLVMUseRef use = LLVMGetFirstUse(function); use; use = LLVMGetNextUse(use)) {
		LLVMValueRef user = LLVMGetUser(use);

		if (!(LLVMIsACallInst(user) || LLVMIsAInvokeInst(user)) ||
		    LLVMGetCalledValue(user) != function)
			return true;
	}
	return false;
}

/* The address that the function returns to. */
static LLVMValueRef return_address(struct instrumenter *in)
{
	static const char name[] = "llvm.returnaddress";
	unsigned id = LLVMLookupIntrinsicID(name, sizeof(name) - 1);
	LLVMValueRef level = LLVMConstInt(in->i32, 0, false);
	LLVMValueRef function = LLVMGetIntrinsicDeclaration(in->module, id, NULL, 0), call;

	call = LLVMBuildCall2(in->builder, LLVMGlobalGetValueType(function), function, &level, 1,
			      "");
	return LLVMBuildPtrToInt(in->builder, call, in->i64, "");
}

LLVMValueRef symbolic_return(struct instrumenter *in, LLVMValueRef function, unsigned leaf,
			     LLVMValueRef s, LLVMValueRef value)
{
	LLVMTypeRef types[4] = { in->pointer, in->i32, in->i64, in->i64 };
	LLVMValueRef arguments[4] = { function, s, symbolic_word(in, value), NULL }, helper;
	struct test test;
	char name[64];

	if (LLVMIsNull(s))
		return value;
	arguments[3] = word(in, 0);
	if (in->is_callback) {
		add_attribute(in, function, "noinline"); /* or it would be the caller's */
		arguments[3] = return_address(in);
	}
	snprintf(name, sizeof(name), "__perdure.sym.return.%u", leaf);
	helper = begin(in, &test, name, in->i64, types, 4);
	if (!helper) {
		LLVMValueRef hook[4] = { parameter(&test, 0), parameter(&test, 1),
					 parameter(&test, 3), number(in, leaf) };

		slow_if(in, &test, is_set(in, hook[1]), parameter(&test, 2));
		helper = end(in, &test,
			     symbolic_call(in, "__perdure_sym_returns", in->i64, hook, 4));
	}
	return symbolic_unword(in, use(in, helper, arguments, 4), LLVMTypeOf(value));
}

LLVMValueRef symbolic_result(struct instrumenter *in, LLVMValueRef callee, unsigned leaf)
{
	LLVMTypeRef types[1] = { in->pointer };
	LLVMValueRef arguments[1] = { callee }, function;
	struct test test;
	char name[64];

	snprintf(name, sizeof(name), "__perdure.sym.result.%u", leaf);
	function = begin(in, &test, name, in->i32, types, 1);
	if (!function) {
		LLVMValueRef at = field(in, result_offset(leaf)), from, mine;
		LLVMValueRef result = LLVMBuildLoad2(in->builder, in->i32, at, "");

		slow_if(in, &test, is_set(in, result), number(in, 0));
		from = LLVMBuildLoad2(in->builder, in->pointer,
				      field(in, offsetof(struct symbolic_call, from)), "");
		mine = LLVMBuildICmp(in->builder, LLVMIntEQ, from, parameter(&test, 0), "");
		LLVMBuildStore(in->builder, number(in, 0), at);
		function = end(in, &test,
			       LLVMBuildSelect(in->builder, mine, result, number(in, 0), ""));
	}
	return use(in, function, arguments, 1);
}
