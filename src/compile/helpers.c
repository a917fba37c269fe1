/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The inline tests. LLVM-C cannot split blocks, so each test is written as a small function with
 * its own blocks, called where the access is, and inlined before anything else runs.
 */
#include "compile/instrument.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PRESERVE_MOST = 14 };

/* ---- attributes and declarations ---- */

static LLVMAttributeRef attribute(struct instrumenter *in, const char *name)
{
	unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));

	return LLVMCreateEnumAttribute(in->context, kind, 0);
}

static void add_attribute(struct instrumenter *in, LLVMValueRef function, const char *name)
{
	LLVMAddAttributeAtIndex(function, LLVMAttributeFunctionIndex, attribute(in, name));
}

/*
 * A hook of the runtime. Called directly: through the GOT, its address could be loaded once for
 * several calls, and then two of them be merged. perdure-cc links with -z now, because lazy
 * binding would clobber a register that preserve_most keeps.
 */
static LLVMValueRef declare_hook(struct instrumenter *in, const char *name, LLVMTypeRef type)
{
	LLVMValueRef function = LLVMGetNamedFunction(in->module, name);

	if (function)
		return function;
	function = LLVMAddFunction(in->module, name, type);
	LLVMSetFunctionCallConv(function, PRESERVE_MOST);
	add_attribute(in, function, "nounwind");
	add_attribute(in, function, "cold");
	return function;
}

/* nomerge: two calls must stay two, or their places in the source could not be told apart. */
static void call_hook(struct instrumenter *in, const char *name, LLVMValueRef *arguments,
		      unsigned count)
{
	LLVMTypeRef types[6], type;
	LLVMValueRef call;

	for (unsigned i = 0; i < count; i++)
		types[i] = LLVMTypeOf(arguments[i]);
	type = LLVMFunctionType(in->void_type, types, count, false);
	call = LLVMBuildCall2(in->builder, type, declare_hook(in, name, type), arguments, count,
			      "");
	LLVMSetInstructionCallConv(call, PRESERVE_MOST);
	LLVMAddCallSiteAttribute(call, LLVMAttributeFunctionIndex, attribute(in, "nomerge"));
	LLVMAddCallSiteAttribute(call, LLVMAttributeFunctionIndex, attribute(in, "nounwind"));
}

static LLVMValueRef constant32(struct instrumenter *in, uint32_t value)
{
	return LLVMConstInt(in->i32, value, false);
}

/* ---- building a helper ---- */

struct helper {
	LLVMValueRef function;
	LLVMBasicBlockRef entry, pm, other, done;
	LLVMBuilderRef outer; /* the caller's builder, while this one's is in use */
};

/* The helper of this name if it exists; otherwise null, and *helper is ready to be filled. */
static LLVMValueRef begin_helper(struct instrumenter *in, struct helper *helper, const char *name,
				 LLVMTypeRef result, LLVMTypeRef *types, unsigned count)
{
	LLVMTypeRef type = LLVMFunctionType(result, types, count, false);
	LLVMValueRef function;
	char full[160];

	snprintf(full, sizeof(full), "%s%s", name, in->outlined ? ".far" : "");
	function = LLVMGetNamedFunction(in->module, full);
	if (function)
		return function;
	function = LLVMAddFunction(in->module, full, type);
	LLVMSetLinkage(function, in->outlined ? LLVMInternalLinkage : LLVMPrivateLinkage);
	add_attribute(in, function, in->outlined ? "noinline" : "alwaysinline");
	if (in->outlined) /* stack walks go through it */
		LLVMAddAttributeAtIndex(
			function, LLVMAttributeFunctionIndex,
			LLVMCreateStringAttribute(in->context, "frame-pointer", 13, "all", 3));
	add_attribute(in, function, "nounwind");
	helper->function = function;
	helper->entry = LLVMAppendBasicBlockInContext(in->context, function, "");
	helper->pm = LLVMAppendBasicBlockInContext(in->context, function, "");
	helper->other = LLVMAppendBasicBlockInContext(in->context, function, "");
	helper->done = LLVMAppendBasicBlockInContext(in->context, function, "");
	helper->outer = in->builder;
	in->builder = LLVMCreateBuilderInContext(in->context);
	LLVMPositionBuilderAtEnd(in->builder, helper->entry);
	return NULL;
}

static void mark_unlikely(struct instrumenter *in, LLVMValueRef branch)
{
	LLVMMetadataRef parts[3] = {
		LLVMMDStringInContext2(in->context, "branch_weights", 14),
		LLVMValueAsMetadata(constant32(in, 1)),
		LLVMValueAsMetadata(constant32(in, 1000)),
	};
	LLVMMetadataRef node = LLVMMDNodeInContext2(in->context, parts, 3);

	LLVMSetMetadata(branch, LLVMGetMDKindIDInContext(in->context, "prof", 4),
			LLVMMetadataAsValue(in->context, node));
}

static LLVMValueRef build_window_test(struct instrumenter *in, LLVMValueRef pointer)
{
	LLVMValueRef address = LLVMBuildPtrToInt(in->builder, pointer, in->i64, "");
	LLVMValueRef shift = LLVMConstInt(in->i64, PERDURE_WINDOW_SHIFT, false);
	LLVMValueRef upper = LLVMBuildLShr(in->builder, address, shift, "");

	return LLVMBuildICmp(in->builder, LLVMIntEQ, upper,
			     LLVMConstInt(in->i64, PERDURE_WINDOW_INDEX, false), "");
}

/* Ends the entry block: PM if the condition holds. The builder moves to the PM block. */
static void branch_on(struct instrumenter *in, struct helper *helper, LLVMValueRef condition)
{
	mark_unlikely(in, LLVMBuildCondBr(in->builder, condition, helper->pm, helper->other));
	LLVMPositionBuilderAtEnd(in->builder, helper->pm);
}

static void to_other(struct instrumenter *in, struct helper *helper)
{
	LLVMBuildBr(in->builder, helper->done);
	LLVMPositionBuilderAtEnd(in->builder, helper->other);
}

static LLVMValueRef end_helper(struct instrumenter *in, struct helper *helper)
{
	LLVMBuildBr(in->builder, helper->done);
	LLVMPositionBuilderAtEnd(in->builder, helper->done);
	LLVMBuildRetVoid(in->builder);
	LLVMDisposeBuilder(in->builder);
	in->builder = helper->outer;
	return helper->function;
}

static void call_helper(struct instrumenter *in, LLVMValueRef helper, LLVMValueRef *arguments,
			unsigned count)
{
	LLVMBuildCall2(in->builder, LLVMGlobalGetValueType(helper), helper, arguments, count, "");
}

/* ---- loads ---- */

void helper_load(struct instrumenter *in, const struct access *access)
{
	LLVMTypeRef types[3] = { in->pointer, in->pointer, in->i64 };
	uint64_t size = LLVMConstIntGetZExtValue(access->size);
	LLVMValueRef function, arguments[3] = { access->pointer, access->base, NULL };
	struct helper helper;

	if (size > PERDURE_SIZE_MASK)
		size = PERDURE_SIZE_MASK;
	arguments[2] = instrument_chained(in, access->flags | size);
	function = begin_helper(in, &helper, "__perdure.load", in->void_type, types, 3);
	if (!function) {
		LLVMValueRef hook[2] = { LLVMGetParam(helper.function, 0),
					 LLVMGetParam(helper.function, 2) };

		branch_on(in, &helper, build_window_test(in, LLVMGetParam(helper.function, 1)));
		call_hook(in, "__perdure_load", hook, 2);
		to_other(in, &helper);
		function = end_helper(in, &helper);
	}
	instrument_before(in, access->instruction);
	call_helper(in, function, arguments, 3);
}

/* ---- stores ---- */

static LLVMValueRef as_i64(struct instrumenter *in, LLVMValueRef value)
{
	LLVMTypeRef type = LLVMTypeOf(value);

	switch (LLVMGetTypeKind(type)) {
	case LLVMPointerTypeKind:
		return LLVMBuildPtrToInt(in->builder, value, in->i64, "");
	case LLVMIntegerTypeKind:
		return LLVMGetIntTypeWidth(type) == 64
			       ? value
			       : LLVMBuildZExt(in->builder, value, in->i64, "");
	default: /* floating point */
		value = LLVMBuildBitCast(
			in->builder, value,
			LLVMIntTypeInContext(in->context, LLVMSizeOfTypeInBits(in->layout, type)),
			"");
		return as_i64(in, value);
	}
}

static void copy_store_properties(struct instrumenter *in, LLVMValueRef from, LLVMValueRef to)
{
	LLVMValueRef tbaa = LLVMGetMetadata(from, in->tbaa_kind);
	LLVMValueRef streaming = LLVMGetMetadata(from, in->nontemporal_kind);

	LLVMSetAlignment(to, LLVMGetAlignment(from));
	LLVMSetVolatile(to, LLVMGetVolatile(from));
	LLVMSetOrdering(to, LLVMGetOrdering(from));
	if (tbaa)
		LLVMSetMetadata(to, in->tbaa_kind, tbaa);
	if (streaming)
		LLVMSetMetadata(to, in->nontemporal_kind, streaming);
}

/* Everything that makes two stores differ on their non-PM side is in the name. */
static void store_name(struct instrumenter *in, const struct access *access, LLVMTypeRef type,
		       char *name, size_t size)
{
	LLVMValueRef store = access->instruction;
	LLVMValueRef tbaa = LLVMGetMetadata(store, in->tbaa_kind);
	void *tag = tbaa ? (void *)LLVMValueAsMetadata(tbaa) : NULL;

	snprintf(name, size, "__perdure.store.%d.%u.%x.%u.%p", LLVMGetTypeKind(type),
		 (unsigned)LLVMStoreSizeOfType(in->layout, type), access->flags,
		 LLVMGetAlignment(store), tag);
}

void helper_store(struct instrumenter *in, const struct access *access, LLVMValueRef value)
{
	LLVMTypeRef type = LLVMTypeOf(value);
	LLVMTypeRef types[5] = { in->pointer, in->pointer, type, in->pointer, in->i64 };
	uint32_t size = LLVMConstIntGetZExtValue(access->size);
	LLVMValueRef function, arguments[5] = { access->pointer, access->base, value,
						place_of(in, access->instruction, access->pointer),
						instrument_chained(in, access->flags | size) };
	struct helper helper;
	char name[128];

	store_name(in, access, type, name, sizeof(name));
	function = begin_helper(in, &helper, name, in->void_type, types, 5);
	if (!function) {
		LLVMValueRef pointer = LLVMGetParam(helper.function, 0);
		LLVMValueRef hook[4] = { pointer, NULL, LLVMGetParam(helper.function, 4),
					 LLVMGetParam(helper.function, 3) };

		branch_on(in, &helper, build_window_test(in, LLVMGetParam(helper.function, 1)));
		hook[1] = as_i64(in, LLVMGetParam(helper.function, 2));
		call_hook(in, "__perdure_store", hook, 4);
		to_other(in, &helper);
		copy_store_properties(
			in, access->instruction,
			LLVMBuildStore(in->builder, LLVMGetParam(helper.function, 2), pointer));
		function = end_helper(in, &helper);
	}
	instrument_before(in, access->instruction);
	call_helper(in, function, arguments, 5);
	LLVMInstructionEraseFromParent(access->instruction);
}

static void call_write_helper(struct instrumenter *in, const struct access *access,
			      const char *hook_name, LLVMValueRef done)
{
	LLVMTypeRef types[5] = { in->pointer, in->pointer, in->i64, in->i32, in->pointer };
	unsigned count = done ? 5 : 3;
	LLVMValueRef arguments[5] = { access->pointer, access->base, access->size, done,
				      place_of(in, access->instruction, access->pointer) };
	LLVMValueRef function;
	struct helper helper;
	char name[96];

	snprintf(name, sizeof(name), "__perdure.%s.%x", hook_name + 10, access->flags);
	function = begin_helper(in, &helper, name, in->void_type, types, count);
	if (!function) {
		LLVMValueRef hook[5] = { LLVMGetParam(helper.function, 0),
					 LLVMGetParam(helper.function, 2),
					 constant32(in, access->flags) };

		if (done) {
			hook[3] = LLVMGetParam(helper.function, 3);
			hook[4] = LLVMGetParam(helper.function, 4);
		}
		branch_on(in, &helper, build_window_test(in, LLVMGetParam(helper.function, 1)));
		call_hook(in, hook_name, hook, count);
		to_other(in, &helper);
		function = end_helper(in, &helper);
	}
	call_helper(in, function, arguments, count);
}

void helper_write_begin(struct instrumenter *in, const struct access *access)
{
	instrument_before(in, access->instruction);
	call_write_helper(in, access, "__perdure_write_begin", NULL);
}

void helper_write_end(struct instrumenter *in, const struct access *access, LLVMValueRef done)
{
	instrument_after(in, access->instruction);
	if (done)
		done = LLVMBuildZExt(in->builder, done, in->i32, "");
	else
		done = constant32(in, 1);
	call_write_helper(in, access, "__perdure_write_end", done);
}

void helper_lanes(struct instrumenter *in, const struct access *access, LLVMValueRef element,
		  LLVMValueRef mask)
{
	LLVMTypeRef types[4] = { in->pointer, in->pointer, in->i64, in->i64 };
	LLVMValueRef arguments[4] = { access->pointer, access->base, element, mask };
	LLVMValueRef function;
	struct helper helper;
	char name[64];

	snprintf(name, sizeof(name), "__perdure.lanes.%x", access->flags);
	function = begin_helper(in, &helper, name, in->void_type, types, 4);
	if (!function) {
		LLVMValueRef hook[4] = { LLVMGetParam(helper.function, 0),
					 LLVMGetParam(helper.function, 2),
					 LLVMGetParam(helper.function, 3),
					 constant32(in, access->flags) };

		branch_on(in, &helper, build_window_test(in, LLVMGetParam(helper.function, 1)));
		call_hook(in, "__perdure_lanes", hook, 4);
		to_other(in, &helper);
		function = end_helper(in, &helper);
	}
	if (access->flags & PERDURE_READ)
		instrument_before(in, access->instruction);
	else
		instrument_after(in, access->instruction);
	call_helper(in, function, arguments, 4);
}

/* ---- flushes and fences ---- */

/* As PMDK spells them: needs neither a target feature nor a recent assembler. */
static const char *const flush_text[] = {
	[PERDURE_CLFLUSH] = "clflush $0",
	[PERDURE_CLFLUSHOPT] = ".byte 0x66; clflush $0",
	[PERDURE_CLWB] = ".byte 0x66; xsaveopt $0",
};

static void build_flush_instruction(struct instrumenter *in, LLVMValueRef pointer,
				    enum perdure_flush kind)
{
	static const char constraints[] = "=*m,~{memory},~{dirflag},~{fpsr},~{flags}";
	LLVMTypeRef type = LLVMFunctionType(in->void_type, &in->pointer, 1, false);
	const char *text = flush_text[kind];
	LLVMValueRef code =
		LLVMGetInlineAsm(type, text, strlen(text), constraints, sizeof(constraints) - 1,
				 true, false, LLVMInlineAsmDialectATT, false);
	LLVMValueRef call = LLVMBuildCall2(in->builder, type, code, &pointer, 1, "");
	unsigned element = LLVMGetEnumAttributeKindForName("elementtype", 11);

	LLVMAddCallSiteAttribute(call, 1, LLVMCreateTypeAttribute(in->context, element, in->i8));
}

void helper_flush(struct instrumenter *in, LLVMValueRef pointer, enum perdure_flush kind)
{
	LLVMTypeRef types[2] = { in->pointer, in->i64 };
	LLVMValueRef function, arguments[2] = { pointer, instrument_chained(in, kind) };
	struct helper helper;
	char name[64];

	snprintf(name, sizeof(name), "__perdure.flush.%d", kind);
	function = begin_helper(in, &helper, name, in->void_type, types, 2);
	if (!function) {
		LLVMValueRef line = LLVMGetParam(helper.function, 0);
		LLVMValueRef hook[2] = { line, LLVMGetParam(helper.function, 1) };

		branch_on(in, &helper, build_window_test(in, line));
		call_hook(in, "__perdure_flush", hook, 2);
		to_other(in, &helper);
		build_flush_instruction(in, line, kind);
		function = end_helper(in, &helper);
	}
	call_helper(in, function, arguments, 2);
}

void helper_fence(struct instrumenter *in, enum perdure_fence kind)
{
	LLVMValueRef argument = instrument_chained(in, kind);

	call_hook(in, "__perdure_fence", &argument, 1);
}

static LLVMValueRef inline_member(struct instrumenter *in, unsigned offset)
{
	LLVMValueRef index = LLVMConstInt(in->i64, offset, false);

	return LLVMBuildGEP2(in->builder, in->i8, in->inline_state, &index, 1, "");
}

void helper_locked(struct instrumenter *in)
{
	struct helper helper;
	LLVMValueRef function =
		begin_helper(in, &helper, "__perdure.locked", in->void_type, NULL, 0);

	if (!function) {
		LLVMValueRef member = inline_member(in, offsetof(struct perdure_inline, pending));
		LLVMValueRef pending = LLVMBuildLoad2(in->builder, in->i8, member, "");
		LLVMValueRef kind = LLVMConstInt(in->i64, PERDURE_RMW_FENCE, false);

		branch_on(in, &helper, LLVMBuildIsNotNull(in->builder, pending, ""));
		call_hook(in, "__perdure_fence", &kind, 1);
		to_other(in, &helper);
		function = end_helper(in, &helper);
	}
	call_helper(in, function, NULL, 0);
}

void helper_visible(struct instrumenter *in, LLVMValueRef pointer, uint32_t descriptor)
{
	LLVMTypeRef types[2] = { in->pointer, in->i64 };
	LLVMValueRef arguments[2] = { pointer ? pointer : LLVMConstNull(in->pointer),
				      instrument_chained(in, descriptor) };
	struct helper helper;
	LLVMValueRef function =
		begin_helper(in, &helper, "__perdure.visible", in->void_type, types, 2);

	if (!function) {
		LLVMValueRef member = inline_member(in, offsetof(struct perdure_inline, fibers));
		LLVMValueRef fibers = LLVMBuildLoad2(in->builder, in->i8, member, "");
		LLVMValueRef hook[2] = { LLVMGetParam(helper.function, 0),
					 LLVMGetParam(helper.function, 1) };

		branch_on(in, &helper, LLVMBuildIsNotNull(in->builder, fibers, ""));
		call_hook(in, "__perdure_visible", hook, 2);
		to_other(in, &helper);
		function = end_helper(in, &helper);
	}
	call_helper(in, function, arguments, 2);
}

void helper_stored(struct instrumenter *in)
{
	LLVMValueRef member = inline_member(in, offsetof(struct perdure_inline, stored));

	LLVMBuildStore(in->builder, LLVMConstInt(in->i8, 1, false), member);
}

/* ---- memcpy and relatives ---- */

void helper_bulk(struct instrumenter *in, LLVMValueRef call, const char *runtime_function)
{
	LLVMValueRef target = LLVMGetOperand(call, 0), second = LLVMGetOperand(call, 1);
	bool is_set = LLVMGetTypeKind(LLVMTypeOf(second)) == LLVMIntegerTypeKind;
	LLVMTypeRef types[4] = { in->pointer, is_set ? in->i8 : in->pointer, in->i64, in->pointer };
	LLVMTypeRef real_types[4] = { in->pointer, is_set ? in->i32 : in->pointer, in->i64,
				      in->pointer };
	LLVMTypeRef real_type = LLVMFunctionType(in->pointer, real_types, 4, false);
	LLVMValueRef arguments[4] = { target, second, LLVMGetOperand(call, 2),
				      place_of(in, call, target) };
	LLVMValueRef function;
	struct helper helper;
	char name[64];

	snprintf(name, sizeof(name), "__perdure.bulk.%s", runtime_function + 10);
	function = begin_helper(in, &helper, name, in->void_type, types, 4);
	if (!function) {
		LLVMValueRef p[3] = { LLVMGetParam(helper.function, 0),
				      LLVMGetParam(helper.function, 1),
				      LLVMGetParam(helper.function, 2) };
		LLVMValueRef real = LLVMGetNamedFunction(in->module, runtime_function);
		LLVMValueRef test = build_window_test(in, p[0]);

		if (!real)
			real = LLVMAddFunction(in->module, runtime_function, real_type);
		if (!is_set)
			test = LLVMBuildOr(in->builder, test, build_window_test(in, p[1]), "");
		branch_on(in, &helper, test);
		LLVMValueRef hook[4] = { p[0],
					 is_set ? LLVMBuildZExt(in->builder, p[1], in->i32, "")
						: p[1],
					 p[2], LLVMGetParam(helper.function, 3) };
		LLVMValueRef made = LLVMBuildCall2(in->builder, real_type, real, hook, 4, "");

		LLVMAddCallSiteAttribute(made, LLVMAttributeFunctionIndex,
					 attribute(in, "nomerge"));
		to_other(in, &helper);
		if (is_set)
			LLVMBuildMemSet(in->builder, p[0], p[1], p[2], 1);
		else if (strstr(runtime_function, "memmove"))
			LLVMBuildMemMove(in->builder, p[0], 1, p[1], 1, p[2]);
		else
			LLVMBuildMemCpy(in->builder, p[0], 1, p[1], 1, p[2]);
		function = end_helper(in, &helper);
	}
	instrument_before(in, call);
	if (LLVMTypeOf(arguments[2]) != in->i64)
		arguments[2] = LLVMBuildZExt(in->builder, arguments[2], in->i64, "");
	call_helper(in, function, arguments, 4);
	LLVMInstructionEraseFromParent(call);
}

/* ---- limits ---- */

void helper_unknown(struct instrumenter *in, const char *text, LLVMValueRef pointer)
{
	LLVMValueRef arguments[2] = {
		LLVMBuildGlobalStringPtr(in->builder, text, "__perdure.text"),
		pointer ? pointer : LLVMConstNull(in->pointer),
	};

	call_hook(in, "__perdure_unknown", arguments, 2);
}
