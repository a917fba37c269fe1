/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of LLVM intrinsics that touch memory, flush it, or order it. */
#include "compile/instrument.h"

#include <stdlib.h>
#include <string.h>

/* Larger copies are left to the runtime, which writes them line by line. */
enum { SMALL_BULK = 128 };

static bool starts(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool is_ordinary(LLVMValueRef pointer)
{
	return access_is_ordinary(access_base(pointer));
}

/* ---- memcpy, memmove, memset ---- */

static void bulk_access(struct instrumenter *in, LLVMValueRef call, unsigned operand, bool store)
{
	LLVMValueRef pointer = LLVMGetOperand(call, operand);
	struct access access = {
		.instruction = call,
		.pointer = pointer,
		.base = access_base(pointer),
		.size = LLVMConstInt(in->i64, LLVMConstIntGetZExtValue(LLVMGetOperand(call, 2)),
				     false),
		.flags = PERDURE_BULK,
	};

	if (access_is_ordinary(access.base))
		return;
	if (!store) {
		helper_load(in, &access);
		return;
	}
	helper_write_begin(in, &access);
	helper_write_end(in, &access, NULL);
}

static void bulk(struct instrumenter *in, LLVMValueRef call, const char *runtime_function)
{
	bool is_set = strstr(runtime_function, "memset") != NULL;
	LLVMValueRef size = LLVMGetOperand(call, 2);

	if (is_ordinary(LLVMGetOperand(call, 0)) &&
	    (is_set || is_ordinary(LLVMGetOperand(call, 1))))
		return;
	/* Small: the program's own instructions, which the optimiser can still expand. */
	if (LLVMIsAConstantInt(size) && LLVMConstIntGetZExtValue(size) <= SMALL_BULK) {
		if (!is_set)
			bulk_access(in, call, 1, false);
		bulk_access(in, call, 0, true);
		return;
	}
	helper_bulk(in, call, runtime_function);
}

/* ---- vectors under a mask ---- */

/* <N x i1>, iN or the sign bits of <N x iM>, as an i64 with one bit a lane. */
static LLVMValueRef mask_bits(struct instrumenter *in, LLVMValueRef mask)
{
	LLVMTypeRef type = LLVMTypeOf(mask);
	unsigned lanes;

	if (LLVMGetTypeKind(type) == LLVMIntegerTypeKind)
		return LLVMGetIntTypeWidth(type) == 64
			       ? mask
			       : LLVMBuildZExt(in->builder, mask, in->i64, "");
	lanes = LLVMGetVectorSize(type);
	if (LLVMGetElementType(type) != in->i1) {
		unsigned bits = LLVMSizeOfTypeInBits(in->layout, LLVMGetElementType(type));

		type = LLVMVectorType(LLVMIntTypeInContext(in->context, bits), lanes);
		mask = LLVMBuildBitCast(in->builder, mask, type, "");
		mask = LLVMBuildICmp(in->builder, LLVMIntSLT, mask, LLVMConstNull(type), "");
	}
	mask = LLVMBuildBitCast(in->builder, mask, LLVMIntTypeInContext(in->context, lanes), "");
	return lanes == 64 ? mask : LLVMBuildZExt(in->builder, mask, in->i64, "");
}

static LLVMValueRef element_size(struct instrumenter *in, LLVMTypeRef vector)
{
	return access_size(in, LLVMGetElementType(vector));
}

static void masked_access(struct instrumenter *in, LLVMValueRef call, LLVMValueRef pointer,
			  LLVMValueRef mask, LLVMTypeRef vector, uint32_t flags)
{
	struct access access = {
		.instruction = call,
		.pointer = pointer,
		.base = access_base(pointer),
		.flags = flags,
	};
	LLVMValueRef bits;

	if (access_is_ordinary(access.base))
		return;
	instrument_before(in, call);
	bits = mask_bits(in, mask);
	helper_lanes(in, &access, element_size(in, vector), bits);
}

/* Compressing stores and expanding loads: no gaps in memory, as many low lanes as bits are set. */
static void packed_access(struct instrumenter *in, LLVMValueRef call, LLVMValueRef pointer,
			  LLVMValueRef mask, LLVMTypeRef vector, uint32_t flags)
{
	unsigned id = LLVMLookupIntrinsicID("llvm.ctpop", 10);
	LLVMValueRef ctpop = LLVMGetIntrinsicDeclaration(in->module, id, &in->i64, 1);
	LLVMValueRef bits, count, ones, none, one = LLVMConstInt(in->i64, 1, false);

	if (is_ordinary(pointer))
		return;
	instrument_before(in, call);
	bits = mask_bits(in, mask);
	count = LLVMBuildCall2(in->builder, LLVMGlobalGetValueType(ctpop), ctpop, &bits, 1, "");
	/* (2 << (count - 1)) - 1, so that 64 lanes do not shift too far. */
	ones = LLVMBuildShl(in->builder, LLVMConstInt(in->i64, 2, false),
			    LLVMBuildSub(in->builder, count, one, ""), "");
	ones = LLVMBuildSub(in->builder, ones, one, "");
	none = LLVMBuildICmp(in->builder, LLVMIntEQ, count, LLVMConstNull(in->i64), "");
	masked_access(in, call, pointer,
		      LLVMBuildSelect(in->builder, none, LLVMConstNull(in->i64), ones, ""), vector,
		      flags);
}

/* One address a lane. */
static void lanes_at(struct instrumenter *in, LLVMValueRef call, LLVMValueRef pointers,
		     LLVMValueRef mask, LLVMTypeRef vector, uint32_t flags)
{
	unsigned lanes = LLVMGetVectorSize(vector);
	LLVMValueRef bits;

	instrument_before(in, call);
	bits = mask_bits(in, mask);
	for (unsigned lane = 0; lane < lanes; lane++) {
		LLVMValueRef index = LLVMConstInt(in->i32, lane, false);
		LLVMValueRef shift = LLVMConstInt(in->i64, lane, false);
		LLVMValueRef pointer, bit;
		struct access access = { .instruction = call, .flags = flags };

		instrument_before(in, call);
		pointer = LLVMBuildExtractElement(in->builder, pointers, index, "");
		bit = LLVMBuildAnd(in->builder, LLVMBuildLShr(in->builder, bits, shift, ""),
				   LLVMConstInt(in->i64, 1, false), "");
		access.pointer = access.base = pointer;
		helper_lanes(in, &access, element_size(in, vector), bit);
	}
}

static void store_of(struct instrumenter *in, LLVMValueRef call, LLVMValueRef pointer,
		     uint64_t size, uint32_t flags)
{
	struct access access = {
		.instruction = call,
		.pointer = pointer,
		.base = access_base(pointer),
		.size = LLVMConstInt(in->i64, size, false),
		.flags = flags,
	};

	if (access_is_ordinary(access.base))
		return;
	helper_write_begin(in, &access);
	helper_write_end(in, &access, NULL);
}

static bool masked_intrinsic(struct instrumenter *in, LLVMValueRef call, const char *name)
{
	LLVMValueRef first = LLVMGetOperand(call, 0);

	if (starts(name, "llvm.masked.store"))
		masked_access(in, call, LLVMGetOperand(call, 1), LLVMGetOperand(call, 3),
			      LLVMTypeOf(first), 0);
	else if (starts(name, "llvm.masked.compressstore"))
		packed_access(in, call, LLVMGetOperand(call, 1), LLVMGetOperand(call, 2),
			      LLVMTypeOf(first), 0);
	else if (starts(name, "llvm.masked.scatter"))
		lanes_at(in, call, LLVMGetOperand(call, 1), LLVMGetOperand(call, 3),
			 LLVMTypeOf(first), 0);
	else if (starts(name, "llvm.masked.gather"))
		lanes_at(in, call, first, LLVMGetOperand(call, 2), LLVMTypeOf(call), PERDURE_READ);
	else if (starts(name, "llvm.masked.load"))
		masked_access(in, call, first, LLVMGetOperand(call, 2), LLVMTypeOf(call),
			      PERDURE_READ);
	else if (starts(name, "llvm.masked.expandload"))
		packed_access(in, call, first, LLVMGetOperand(call, 1), LLVMTypeOf(call),
			      PERDURE_READ);
	else if (starts(name, "llvm.x86.avx.maskstore") || starts(name, "llvm.x86.avx2.maskstore"))
		masked_access(in, call, first, LLVMGetOperand(call, 1),
			      LLVMTypeOf(LLVMGetOperand(call, 2)), 0);
	else if (starts(name, "llvm.x86.avx.maskload") || starts(name, "llvm.x86.avx2.maskload"))
		masked_access(in, call, first, LLVMGetOperand(call, 1), LLVMTypeOf(call),
			      PERDURE_READ);
	else if (starts(name, "llvm.x86.sse2.maskmov.dqu"))
		masked_access(in, call, LLVMGetOperand(call, 2), LLVMGetOperand(call, 1),
			      LLVMTypeOf(first), PERDURE_NONTEMPORAL);
	else
		return false;
	return true;
}

/* x86's own scatters and gathers: base plus scaled indices. */
static void indexed_lanes(struct instrumenter *in, LLVMValueRef call, LLVMValueRef base,
			  LLVMValueRef mask, LLVMValueRef index, LLVMTypeRef vector, uint32_t flags)
{
	unsigned count = LLVMGetVectorSize(LLVMTypeOf(index));
	unsigned lanes = LLVMGetVectorSize(vector) < count ? LLVMGetVectorSize(vector) : count;
	LLVMTypeRef wide = LLVMVectorType(in->i64, count);
	/* The scale is an immediate. */
	uint64_t factor = LLVMConstIntGetZExtValue(LLVMGetOperand(call, 4));
	LLVMValueRef scales[64];

	for (unsigned i = 0; i < count; i++)
		scales[i] = LLVMConstInt(in->i64, factor, false);
	instrument_before(in, call);
	if (LLVMGetElementType(LLVMTypeOf(index)) != in->i64)
		index = LLVMBuildSExt(in->builder, index, wide, "");
	index = LLVMBuildMul(in->builder, index, LLVMConstVector(scales, count), "");
	lanes_at(in, call, LLVMBuildGEP2(in->builder, in->i8, base, &index, 1, ""), mask,
		 LLVMVectorType(LLVMGetElementType(vector), lanes), flags);
}

/* …scatter…(base, mask, indices, value, scale), …gather…(unchosen, base, indices, mask, scale) */
static bool scatter_or_gather(struct instrumenter *in, LLVMValueRef call, const char *name)
{
	if (!starts(name, "llvm.x86.avx"))
		return false;
	if (strstr(name, ".scatter"))
		indexed_lanes(in, call, LLVMGetOperand(call, 0), LLVMGetOperand(call, 1),
			      LLVMGetOperand(call, 2), LLVMTypeOf(LLVMGetOperand(call, 3)), 0);
	else if (strstr(name, ".gather") && !strstr(name, "gatherpf"))
		indexed_lanes(in, call, LLVMGetOperand(call, 1), LLVMGetOperand(call, 3),
			      LLVMGetOperand(call, 2), LLVMTypeOf(call), PERDURE_READ);
	else
		return false;
	return true;
}

/* ---- x86 ---- */

static const struct {
	const char *name;
	enum perdure_flush kind;
} flushes[] = {
	{ "llvm.x86.sse2.clflush", PERDURE_CLFLUSH },
	{ "llvm.x86.clflushopt", PERDURE_CLFLUSHOPT },
	{ "llvm.x86.clwb", PERDURE_CLWB },
};

static const struct {
	const char *name;
	enum perdure_fence kind;
} fences[] = {
	{ "llvm.x86.sse.sfence", PERDURE_SFENCE },
	{ "llvm.x86.sse2.mfence", PERDURE_MFENCE },
	{ "llvm.x86.sse2.lfence", PERDURE_LFENCE },
};

/* Intrinsics that store a fixed number of bytes through their first operand. */
static const struct {
	const char *name;
	uint16_t size;
	uint32_t flags;
} stores[] = {
	{ "llvm.x86.directstore32", 4, PERDURE_NONTEMPORAL },
	{ "llvm.x86.directstore64", 8, PERDURE_NONTEMPORAL },
	{ "llvm.x86.movdir64b", 64, PERDURE_NONTEMPORAL },
	{ "llvm.x86.fxsave", 512, 0 },
	{ "llvm.x86.sse.stmxcsr", 4, 0 },
};

static bool x86_intrinsic(struct instrumenter *in, LLVMValueRef call, const char *name)
{
	for (unsigned i = 0; i < sizeof(flushes) / sizeof(*flushes); i++)
		if (strcmp(name, flushes[i].name) == 0) {
			instrument_before(in, call);
			helper_flush(in, LLVMGetOperand(call, 0), flushes[i].kind);
			LLVMInstructionEraseFromParent(call);
			return true;
		}
	for (unsigned i = 0; i < sizeof(fences) / sizeof(*fences); i++)
		if (strcmp(name, fences[i].name) == 0) {
			instrument_before(in, call);
			helper_fence(in, fences[i].kind);
			return true;
		}
	for (unsigned i = 0; i < sizeof(stores) / sizeof(*stores); i++)
		if (starts(name, stores[i].name)) {
			store_of(in, call, LLVMGetOperand(call, 0), stores[i].size,
				 stores[i].flags);
			return true;
		}
	return scatter_or_gather(in, call, name);
}

/* ---- everything else ---- */

/* Intrinsics with pointers that have nothing to do with the program's data. */
static const char *const harmless[] = {
	"llvm.dbg.",
	"llvm.lifetime.",
	"llvm.invariant.",
	"llvm.va_",
	"llvm.prefetch",
	"llvm.assume",
	"llvm.objectsize",
	"llvm.launder",
	"llvm.strip",
	"llvm.stack",
	"llvm.frameaddress",
	"llvm.returnaddress",
	"llvm.eh.",
	"llvm.annotation",
	"llvm.var.annotation",
	"llvm.ptr.annotation",
	"llvm.threadlocal",
	"llvm.ptrmask",
	"llvm.is.constant",
	"llvm.instrprof",
	"llvm.coro",
	"llvm.preserve",
	"llvm.type.",
	"llvm.ubsantrap",
	"llvm.experimental.noalias",
	"llvm.localescape",
	"llvm.sponentry",
	"llvm.clear_cache",
	"llvm.init.trampoline",
	"llvm.adjust.trampoline",
	"llvm.x86.cldemote",
	"llvm.x86.sse.ldmxcsr",
	"llvm.expect",
	"llvm.fake.use",
	"llvm.x86.fxrstor",
	"llvm.x86.xrstor",
	"llvm.x86.rdpkru",
	"llvm.donothing",
	"llvm.gcroot",
};

static bool has_pointer(LLVMValueRef call, LLVMValueRef *pointer)
{
	for (unsigned i = 0; i < LLVMGetNumArgOperands(call); i++) {
		LLVMValueRef operand = LLVMGetOperand(call, i);

		if (LLVMGetTypeKind(LLVMTypeOf(operand)) == LLVMPointerTypeKind &&
		    !is_ordinary(operand)) {
			*pointer = operand;
			return true;
		}
	}
	return false;
}

static void unknown(struct instrumenter *in, LLVMValueRef call, const char *name)
{
	LLVMValueRef pointer;
	char *text;

	for (unsigned i = 0; i < sizeof(harmless) / sizeof(*harmless); i++)
		if (starts(name, harmless[i]))
			return;
	if (!has_pointer(call, &pointer))
		return;
	text = instrument_describe(in, call, name);
	instrument_before(in, call);
	helper_unknown(in, text, pointer);
	free(text);
}

/* Time is the runtime's business. */
static void replace_counter(struct instrumenter *in, LLVMValueRef call)
{
	static const char name[] = "__perdure_rdtsc";
	LLVMTypeRef type = LLVMFunctionType(in->i64, NULL, 0, false);
	LLVMValueRef function = LLVMGetNamedFunction(in->module, name), made;

	if (!function)
		function = LLVMAddFunction(in->module, name, type);
	instrument_before(in, call);
	made = LLVMBuildCall2(in->builder, type, function, NULL, 0, "");
	LLVMReplaceAllUsesWith(call, made);
	LLVMInstructionEraseFromParent(call);
}

void instrument_intrinsic(struct instrumenter *in, LLVMValueRef call)
{
	const char *name = LLVMGetValueName(LLVMGetCalledValue(call));

	if (starts(name, "llvm.memcpy"))
		bulk(in, call, "__perdure_memcpy");
	else if (starts(name, "llvm.memmove"))
		bulk(in, call, "__perdure_memmove");
	else if (starts(name, "llvm.memset"))
		bulk(in, call, "__perdure_memset");
	else if (strcmp(name, "llvm.x86.sse2.pause") == 0) {
		instrument_before(in, call);
		helper_visible(in, NULL, 0);
	} else if (strcmp(name, "llvm.x86.rdtsc") == 0 ||
		   strcmp(name, "llvm.readcyclecounter") == 0) {
		replace_counter(in, call);
	} else if (!masked_intrinsic(in, call, name) && !x86_intrinsic(in, call, name))
		unknown(in, call, name);
}
