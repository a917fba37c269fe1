/* SPDX-License-Identifier: BSD-3-Clause */
#include "compile/instrument.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/BitWriter.h>
#include <llvm-c/Comdat.h>
#include <llvm-c/DebugInfo.h>
#include <llvm-c/Error.h>
#include <llvm-c/Target.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compile/symbolic.h"

#define NOTE "__perdure_note"

/* ---- positions ---- */

/* A call to an inlinable function must have a location where the function has debug info. */
static void set_location(struct instrumenter *in, LLVMValueRef instruction)
{
	LLVMMetadataRef location = LLVMInstructionGetDebugLoc(instruction);
	LLVMMetadataRef scope = LLVMGetSubprogram(in->function);

	if (!location && scope)
		location = LLVMDIBuilderCreateDebugLocation(in->context, 0, 0, scope, NULL);
	LLVMSetCurrentDebugLocation2(in->builder, location);
}

void instrument_before(struct instrumenter *in, LLVMValueRef instruction)
{
	LLVMPositionBuilderBefore(in->builder, instruction);
	set_location(in, instruction);
}

void instrument_after(struct instrumenter *in, LLVMValueRef instruction)
{
	LLVMPositionBuilderBefore(in->builder, LLVMGetNextInstruction(instruction));
	set_location(in, instruction);
}

char *instrument_describe(struct instrumenter *in, LLVMValueRef instruction, const char *text)
{
	unsigned line = LLVMGetDebugLocLine(instruction), length = 0;
	const char *file = line ? LLVMGetDebugLocFilename(instruction, &length) : NULL;
	char *result = NULL;
	int written;

	if (file)
		written = asprintf(&result, "%.*s:%u: %s", (int)length, file, line, text);
	else
		written = asprintf(&result, "%s: %s", LLVMGetValueName(in->function), text);
	if (written < 0)
		abort();
	for (char *p = result; *p; p++)
		if (*p == '\n' || *p == '\t')
			*p = ' ';
	return result;
}

/* ---- chains of straight-line code ---- */

LLVMValueRef instrument_chained(struct instrumenter *in, uint32_t descriptor)
{
	uint64_t chain = in->link.stores <= PERDURE_CHAIN_STORES
				 ? (in->link.chain & ~PERDURE_CHAIN_STORES) | in->link.stores
				 : 0;

	return LLVMConstInt(in->i64, chain << PERDURE_CHAIN_SHIFT | descriptor, false);
}

static bool is_quiet_call(LLVMValueRef call)
{
	static const char *const quiet[] = { "llvm.dbg.",        "llvm.lifetime.",
					     "llvm.assume",      "llvm.x86.sse",
					     "llvm.x86.clflush", "llvm.x86.clwb",
					     "llvm.annotation",  "llvm.ptr.annotation" };
	LLVMValueRef callee = LLVMGetCalledValue(call);
	const char *name = LLVMIsAFunction(callee) ? LLVMGetValueName(callee) : "";

	if (strncmp(name, "__perdure.", 10) == 0)
		return true;
	for (unsigned i = 0; i < sizeof(quiet) / sizeof(*quiet); i++)
		if (strncmp(name, quiet[i], strlen(quiet[i])) == 0)
			return true;
	return false;
}

static uint32_t access_flags(struct instrumenter *in, LLVMValueRef instruction);

/* To the thread's own variables, or to the flag that goes with stores. */
static bool is_unseen_store(struct instrumenter *in, LLVMValueRef store)
{
	LLVMValueRef base = access_base(LLVMGetOperand(store, 1));

	return base == in->inline_state || (access_is_stack(base) && !access_flags(in, store));
}

/* What an instruction means for those behind it. */
static struct link after(struct instrumenter *in, LLVMValueRef instruction, struct link link,
			 uint32_t fresh)
{
	switch (LLVMGetInstructionOpcode(instruction)) {
	case LLVMStore:
		if (!is_unseen_store(in, instruction))
			link.stores++;
		break;
	case LLVMAtomicRMW:
	case LLVMAtomicCmpXchg:
		return (struct link){ fresh, 0 };
	case LLVMCall:
	case LLVMInvoke:
	case LLVMCallBr:
		if (!is_quiet_call(instruction))
			return (struct link){ fresh, 0 };
		break;
	default:
		break;
	}
	return link;
}

/* The blocks of a function, and how they are linked: at the beginning, and at the end. */
struct chain_block {
	LLVMBasicBlockRef block;
	uint32_t before;    /* instructions in the blocks before it */
	bool known, broken; /* broken: what comes before it differs */
	struct link first, last;
};

/* Chains begin with blocks (even numbers) and behind instructions that break them (odd ones). */
static uint32_t chain_id(const struct instrumenter *in, uint32_t number)
{
	return in->chain + (number + 1) * (PERDURE_CHAIN_STORES + 1);
}

static struct chain_block *find_block(struct chain_block *list, size_t count,
				      LLVMBasicBlockRef block)
{
	for (size_t i = 0; i < count; i++)
		if (list[i].block == block)
			return &list[i];
	return NULL;
}

static bool same_link(struct link a, struct link b)
{
	return a.chain == b.chain && a.stores == b.stores;
}

/* Goes on from the blocks before it, if these agree. Ways back are taken to agree at first. */
static void link_block(struct instrumenter *in, struct chain_block *list, size_t count,
		       struct chain_block *block)
{
	struct link own = { chain_id(in, 2 * block->before), 0 };
	uint32_t number = 2 * block->before + 1;
	bool any = false;

	block->first = own;
	for (LLVMUseRef use = LLVMGetFirstUse(LLVMBasicBlockAsValue(block->block));
	     use && !block->broken; use = LLVMGetNextUse(use)) {
		LLVMValueRef user = LLVMGetUser(use);
		struct chain_block *from = NULL;

		if (LLVMIsATerminatorInst(user))
			from = find_block(list, count, LLVMGetInstructionParent(user));
		else
			block->broken = true;
		if (!from || !from->known)
			continue;
		block->broken |= any && !same_link(from->last, block->first);
		block->first = from->last;
		any = true;
	}
	if (block->broken)
		block->first = own;
	block->last = block->first;
	for (LLVMValueRef i = LLVMGetFirstInstruction(block->block); i;
	     i = LLVMGetNextInstruction(i), number += 2)
		block->last = after(in, i, block->last, chain_id(in, number));
	block->known = true;
}

/* Until all agree: each time at least one block more is broken. */
static struct chain_block *link_blocks(struct instrumenter *in, LLVMValueRef function,
				       size_t *blocks)
{
	enum { MOST = 1000 }; /* blocks; of larger functions each is on its own */
	size_t count = LLVMCountBasicBlocks(function), broken = SIZE_MAX, before;
	struct chain_block *list = calloc(count + 1, sizeof(*list)), *next = list;
	uint32_t instructions = 0;

	if (!list)
		abort();
	*blocks = count;
	for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(function); b;
	     b = LLVMGetNextBasicBlock(b)) {
		*next++ = (struct chain_block){
			.block = b,
			.before = instructions,
			.broken = count > MOST,
		};
		for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i))
			instructions++;
	}
	do {
		before = broken;
		broken = 0;
		for (size_t i = 0; i < count; i++) {
			link_block(in, list, count, &list[i]);
			broken += list[i].broken;
		}
	} while (broken != before);
	return list;
}

/* ---- loads and stores ---- */

static uint32_t order_flags(LLVMAtomicOrdering ordering)
{
	static const uint8_t orders[] = {
		[LLVMAtomicOrderingNotAtomic] = PERDURE_ORDER_NONE,
		[LLVMAtomicOrderingUnordered] = PERDURE_ORDER_RELAXED,
		[LLVMAtomicOrderingMonotonic] = PERDURE_ORDER_RELAXED,
		[LLVMAtomicOrderingAcquire] = PERDURE_ORDER_ACQUIRE,
		[LLVMAtomicOrderingRelease] = PERDURE_ORDER_RELEASE,
		[LLVMAtomicOrderingAcquireRelease] = PERDURE_ORDER_ACQ_REL,
		[LLVMAtomicOrderingSequentiallyConsistent] = PERDURE_ORDER_SEQ_CST,
	};
	uint32_t order = orders[ordering];

	return order ? PERDURE_ATOMIC | order << PERDURE_ORDER_SHIFT : 0;
}

static uint32_t access_flags(struct instrumenter *in, LLVMValueRef instruction)
{
	uint32_t flags = order_flags(LLVMGetOrdering(instruction));

	if (LLVMGetVolatile(instruction))
		flags |= PERDURE_VOLATILE;
	if (LLVMGetMetadata(instruction, in->nontemporal_kind))
		flags |= PERDURE_NONTEMPORAL;
	return flags;
}

/* Before hooks for PM, so that the event follows what the hook lets others do. */
static void tell_visible(struct instrumenter *in, const struct access *access)
{
	uint64_t size =
		LLVMIsAConstantInt(access->size) ? LLVMConstIntGetZExtValue(access->size) : 0;

	if (!(access->flags & (PERDURE_ATOMIC | PERDURE_VOLATILE | PERDURE_RMW)))
		return;
	instrument_before(in, access->instruction);
	helper_visible(in, access->pointer,
		       access->flags | (size <= PERDURE_SIZE_MASK ? (uint32_t)size : 0) |
			       (LLVMIsAStoreInst(access->instruction) ? PERDURE_STORES : 0));
}

static void instrument_load(struct instrumenter *in, LLVMValueRef load)
{
	LLVMValueRef pointer = LLVMGetOperand(load, 0);
	struct access access = {
		.instruction = load,
		.pointer = pointer,
		.base = access_base(pointer),
		.size = access_size(in, LLVMTypeOf(load)),
	};

	access.flags = access_flags(in, load);
	tell_visible(in, &access);
	if (!access_is_ordinary(access.base))
		helper_load(in, &access);
}

/* What the runtime can store itself, in one step with the event. */
static bool is_simple(struct instrumenter *in, LLVMTypeRef type)
{
	unsigned bits = LLVMSizeOfTypeInBits(in->layout, type);

	switch (LLVMGetTypeKind(type)) {
	case LLVMPointerTypeKind:
	case LLVMFloatTypeKind:
	case LLVMDoubleTypeKind:
		return true;
	case LLVMIntegerTypeKind:
		return bits == 8 || bits == 16 || bits == 32 || bits == 64;
	default:
		return false;
	}
}

static void surround(struct instrumenter *in, struct access *access)
{
	helper_write_begin(in, access);
	helper_write_end(in, access, NULL);
}

static void instrument_store(struct instrumenter *in, LLVMValueRef store)
{
	LLVMValueRef value = LLVMGetOperand(store, 0), pointer = LLVMGetOperand(store, 1);
	struct access access = {
		.instruction = store,
		.pointer = pointer,
		.base = access_base(pointer),
		.size = access_size(in, LLVMTypeOf(value)),
	};
	bool exchange = LLVMGetOrdering(store) == LLVMAtomicOrderingSequentiallyConsistent;

	access.flags = access_flags(in, store) | (exchange ? PERDURE_RMW | PERDURE_STORES : 0);
	tell_visible(in, &access);
	if (exchange) { /* compiled to xchg: a locked instruction */
		instrument_before(in, store);
		helper_locked(in);
	}
	if (access_is_ordinary(access.base))
		return;
	if (is_simple(in, LLVMTypeOf(value)) && !exchange)
		helper_store(in, &access, value);
	else
		surround(in, &access);
}

/* ---- atomics ---- */

static void instrument_rmw(struct instrumenter *in, LLVMValueRef rmw)
{
	LLVMValueRef pointer = LLVMGetOperand(rmw, 0);
	struct access access = {
		.instruction = rmw,
		.pointer = pointer,
		.base = access_base(pointer),
		.size = access_size(in, LLVMTypeOf(LLVMGetOperand(rmw, 1))),
		.flags = PERDURE_RMW | order_flags(LLVMGetOrdering(rmw)),
	};

	tell_visible(in, &access);
	instrument_before(in, rmw);
	helper_locked(in);
	if (access_is_ordinary(access.base))
		return;
	helper_load(in, &access);
	surround(in, &access);
}

/* One that fails is a load with an order of its own: the stronger one counts. */
static LLVMAtomicOrdering stronger_order(LLVMAtomicOrdering success, LLVMAtomicOrdering failure)
{
	bool acquires = failure == LLVMAtomicOrderingAcquire ||
			failure == LLVMAtomicOrderingSequentiallyConsistent;

	if (acquires && success == LLVMAtomicOrderingMonotonic)
		return LLVMAtomicOrderingAcquire;
	if (acquires && success == LLVMAtomicOrderingRelease)
		return LLVMAtomicOrderingAcquireRelease;
	return success;
}

static void instrument_compare_exchange(struct instrumenter *in, LLVMValueRef exchange)
{
	LLVMValueRef pointer = LLVMGetOperand(exchange, 0), next;
	struct access access = {
		.instruction = exchange,
		.pointer = pointer,
		.base = access_base(pointer),
		.size = access_size(in, LLVMTypeOf(LLVMGetOperand(exchange, 1))),
		.flags = PERDURE_RMW |
			 order_flags(stronger_order(LLVMGetCmpXchgSuccessOrdering(exchange),
						    LLVMGetCmpXchgFailureOrdering(exchange))),
	};
	LLVMValueRef done;

	tell_visible(in, &access);
	instrument_before(in, exchange);
	helper_locked(in);
	if (access_is_ordinary(access.base))
		return;
	helper_load(in, &access);
	helper_write_begin(in, &access);
	next = LLVMGetNextInstruction(exchange);
	instrument_before(in, next);
	done = LLVMBuildExtractValue(in->builder, exchange, 1, "");
	access.instruction = done;
	LLVMInstructionSetDebugLoc(done, LLVMInstructionGetDebugLoc(exchange));
	helper_write_end(in, &access, done);
}

static void instrument_fence(struct instrumenter *in, LLVMValueRef fence)
{
	enum perdure_fence kind;

	if (LLVMIsAtomicSingleThread(fence))
		return;
	switch (LLVMGetOrdering(fence)) {
	case LLVMAtomicOrderingSequentiallyConsistent:
		kind = PERDURE_MFENCE;
		break;
	case LLVMAtomicOrderingAcquire:
		kind = PERDURE_THREAD_FENCE_ACQUIRE;
		break;
	default:
		kind = PERDURE_THREAD_FENCE_RELEASE;
	}
	instrument_before(in, fence);
	helper_fence(in, kind);
}

/* ---- calls ---- */

/* Atomics that the compiler leaves to libatomic: __atomic_store_16, __atomic_exchange, … */
static bool instrument_atomic_call(struct instrumenter *in, LLVMValueRef call, const char *name)
{
	const char *operation, *suffix;
	bool generic, is_load;
	LLVMValueRef pointer;
	struct access access;

	if (strncmp(name, "__atomic_", 9) != 0 && strncmp(name, "__sync_", 7) != 0)
		return false;
	operation = name + (name[2] == 'a' ? 9 : 7);
	suffix = strrchr(name, '_');
	if (strncmp(operation, "is_lock_free", 12) == 0 ||
	    strncmp(operation, "thread_fence", 12) == 0 ||
	    strncmp(operation, "signal_fence", 12) == 0 || LLVMGetNumArgOperands(call) < 2)
		return false;
	generic = suffix[1] < '0' || suffix[1] > '9';
	is_load = strncmp(operation, "load", 4) == 0;
	pointer = LLVMGetOperand(call, generic ? 1 : 0);
	if (LLVMGetTypeKind(LLVMTypeOf(pointer)) != LLVMPointerTypeKind)
		return false;
	access = (struct access){
		.instruction = call,
		.pointer = pointer,
		.base = access_base(pointer),
		.size = generic ? LLVMGetOperand(call, 0)
				: LLVMConstInt(in->i64, atoi(suffix + 1), false),
		.flags = PERDURE_ATOMIC | PERDURE_ORDER_SEQ_CST << PERDURE_ORDER_SHIFT |
			 (is_load ? 0 : PERDURE_RMW) |
			 (strncmp(operation, "compare", 7) == 0 ? PERDURE_IF_CHANGED : 0),
	};
	tell_visible(in, &access);
	if (!is_load) {
		instrument_before(in, call);
		helper_locked(in);
	}
	if (access_is_ordinary(access.base))
		return true;
	if (is_load && LLVMIsAConstantInt(access.size))
		helper_load(in, &access);
	else if (!is_load && LLVMIsACallInst(call))
		surround(in, &access);
	return true;
}

/* A struct passed by value is read by the call. */
static void instrument_byval(struct instrumenter *in, LLVMValueRef call)
{
	unsigned kind = LLVMGetEnumAttributeKindForName("byval", 5);

	for (unsigned i = 0; i < LLVMGetNumArgOperands(call); i++) {
		LLVMAttributeRef byval = LLVMGetCallSiteEnumAttribute(call, i + 1, kind);
		struct access access;

		if (!byval)
			continue;
		access = (struct access){
			.instruction = call,
			.pointer = LLVMGetOperand(call, i),
			.base = access_base(LLVMGetOperand(call, i)),
			.size = access_size(in, LLVMGetTypeAttributeValue(byval)),
			.flags = PERDURE_BULK,
		};
		if (!access_is_ordinary(access.base))
			helper_load(in, &access);
	}
}

/*
 * What libc does to memory is told by the runtime's interposers: the optimiser must not replace
 * strcpy by a few stores of its own, or memcmp by loads.
 */
static void keep_library_call(struct instrumenter *in, LLVMValueRef call)
{
	unsigned kind = LLVMGetEnumAttributeKindForName("nobuiltin", 9);
	unsigned nomerge = LLVMGetEnumAttributeKindForName("nomerge", 7);

	/* Two calls of pmem_persist must stay two, or their places could not be told apart. */
	LLVMAddCallSiteAttribute(call, LLVMAttributeFunctionIndex,
				 LLVMCreateEnumAttribute(in->context, nomerge, 0));
	for (unsigned i = 0; i < LLVMGetNumArgOperands(call); i++) {
		LLVMValueRef operand = LLVMGetOperand(call, i);

		if (LLVMGetTypeKind(LLVMTypeOf(operand)) != LLVMPointerTypeKind ||
		    access_is_ordinary(access_base(operand)))
			continue;
		LLVMAddCallSiteAttribute(call, LLVMAttributeFunctionIndex,
					 LLVMCreateEnumAttribute(in->context, kind, 0));
		return;
	}
}

static void instrument_call(struct instrumenter *in, LLVMValueRef call)
{
	LLVMValueRef callee = LLVMGetCalledValue(call);

	if (LLVMIsAInlineAsm(callee)) {
		instrument_assembly(in, call);
		return;
	}
	if (LLVMIsAFunction(callee) && LLVMGetIntrinsicID(callee)) {
		instrument_intrinsic(in, call);
		return;
	}
	if (LLVMIsAFunction(callee) && LLVMIsDeclaration(callee)) {
		if (instrument_atomic_call(in, call, LLVMGetValueName(callee)))
			return;
		keep_library_call(in, call);
	}
	instrument_byval(in, call);
}

/* ---- functions and the module ---- */

static void instrument_instruction(struct instrumenter *in, LLVMValueRef instruction)
{
	switch (LLVMGetInstructionOpcode(instruction)) {
	case LLVMLoad:
		instrument_load(in, instruction);
		break;
	case LLVMStore:
		instrument_store(in, instruction);
		break;
	case LLVMAtomicRMW:
		instrument_rmw(in, instruction);
		break;
	case LLVMAtomicCmpXchg:
		instrument_compare_exchange(in, instruction);
		break;
	case LLVMFence:
		instrument_fence(in, instruction);
		break;
	case LLVMCall:
	case LLVMInvoke:
	case LLVMCallBr:
		instrument_call(in, instruction);
		break;
	default:
		break;
	}
}

static bool is_wanted(LLVMValueRef function)
{
	unsigned naked = LLVMGetEnumAttributeKindForName("naked", 5);

	return !LLVMIsDeclaration(function) &&
	       strncmp(LLVMGetValueName(function), "__perdure", 9) != 0 &&
	       !LLVMGetEnumAttributeAtIndex(function, LLVMAttributeFunctionIndex, naked);
}

/* Room at the start of each function, where the runtime can hook those that a model describes. */
static void make_hookable(struct instrumenter *in, LLVMValueRef function)
{
	static const char name[] = "patchable-function-entry";

	if (!LLVMGetStringAttributeAtIndex(function, LLVMAttributeFunctionIndex, name,
					   sizeof(name) - 1))
		LLVMAddAttributeAtIndex(
			function, LLVMAttributeFunctionIndex,
			LLVMCreateStringAttribute(in->context, name, sizeof(name) - 1, "5", 1));
}

enum { LARGE_FUNCTION = 8000 }; /* instructions */

void instrument_collect(struct instructions *all, LLVMBasicBlockRef block)
{
	for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i)) {
		if (all->count == all->room) {
			all->room = all->room ? all->room * 2 : 256;
			all->list = realloc(all->list, all->room * sizeof(*all->list));
			if (!all->list)
				abort();
		}
		all->list[all->count++] = i;
	}
}

static void instrument_function(struct instrumenter *in, LLVMValueRef function)
{
	struct instructions all = { 0 };
	LLVMBasicBlockRef block = NULL;
	struct chain_block *chains;
	struct link link = { 0 };
	size_t blocks;

	in->function = function;
	make_hookable(in, function);
	instrument_stored(in, function);
	for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(function); b;
	     b = LLVMGetNextBasicBlock(b))
		instrument_collect(&all, b);
	/* Each inlined test adds blocks; the optimiser needs quadratic time for very many. */
	in->outlined = all.count > LARGE_FUNCTION;
	chains = link_blocks(in, function, &blocks);
	for (size_t i = 0; i < all.count; i++) {
		if (LLVMGetInstructionParent(all.list[i]) != block) {
			block = LLVMGetInstructionParent(all.list[i]);
			link = find_block(chains, blocks, block)->first;
		}
		in->link = link;
		link = after(in, all.list[i], link, chain_id(in, 2 * i + 1));
		instrument_instruction(in, all.list[i]);
	}
	in->chain = chain_id(in, 2 * all.count);
	free(chains);
	free(all.list);
}

/*
 * An inline function of C99 has a body here and another one elsewhere that may not have been
 * built with perdure-cc, or not at all: what is called must be this one.
 */
static void keep_bodies(LLVMModuleRef module)
{
	for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
		if (LLVMGetLinkage(f) == LLVMAvailableExternallyLinkage)
			LLVMSetLinkage(f, LLVMInternalLinkage);
}

/* Appends to llvm.used: the linker must not collect it. */
static void keep(struct instrumenter *in, LLVMValueRef global)
{
	LLVMValueRef old = LLVMGetNamedGlobal(in->module, "llvm.used"), used;
	LLVMValueRef initial = old ? LLVMGetInitializer(old) : NULL;
	unsigned count = initial ? LLVMGetNumOperands(initial) : 0;
	LLVMValueRef *list = calloc(count + 1, sizeof(*list));

	if (!list)
		abort();
	for (unsigned i = 0; i < count; i++)
		list[i] = LLVMGetOperand(initial, i);
	list[count] = global;
	if (old)
		LLVMDeleteGlobal(old);
	initial = LLVMConstArray2(in->pointer, list, count + 1);
	used = LLVMAddGlobal(in->module, LLVMTypeOf(initial), "llvm.used");
	LLVMSetInitializer(used, initial);
	LLVMSetLinkage(used, LLVMAppendingLinkage);
	LLVMSetSection(used, "llvm.metadata");
	free(list);
}

/* The note by which the runtime and the command know instrumented objects. */
static void add_note(struct instrumenter *in)
{
	struct {
		uint32_t name_size, description_size, type;
		char name[8];
		uint32_t version;
	} note = { 8, 4, PERDURE_NOTE_TYPE, PERDURE_NOTE_NAME, PERDURE_ABI_VERSION };
	LLVMValueRef content =
		LLVMConstStringInContext2(in->context, (const char *)&note, sizeof(note), true);
	LLVMValueRef global = LLVMAddGlobal(in->module, LLVMTypeOf(content), NOTE);
	LLVMComdatRef group = LLVMGetOrInsertComdat(in->module, NOTE);

	LLVMSetInitializer(global, content);
	LLVMSetGlobalConstant(global, true);
	LLVMSetLinkage(global, LLVMWeakODRLinkage);
	LLVMSetVisibility(global, LLVMHiddenVisibility);
	LLVMSetSection(global, ".note.perdure");
	LLVMSetAlignment(global, 4);
	LLVMSetComdat(global, group);
	keep(in, global);
}

/* For the analysis of the whole program: this file as it is now, in a section of its own. */
static void embed_bitcode(struct instrumenter *in)
{
	LLVMMemoryBufferRef buffer = LLVMWriteBitcodeToMemoryBuffer(in->module);
	uint64_t size = LLVMGetBufferSize(buffer);
	struct symbolic_bitcode head = { SYMBOLIC_BITCODE_MAGIC, size };
	char *bytes = malloc(sizeof(head) + size);
	LLVMValueRef content, global;

	if (!bytes)
		abort();
	memcpy(bytes, &head, sizeof(head));
	memcpy(bytes + sizeof(head), LLVMGetBufferStart(buffer), size);
	content = LLVMConstStringInContext2(in->context, bytes, sizeof(head) + size, true);
	global = LLVMAddGlobal(in->module, LLVMTypeOf(content), "__perdure.bitcode");
	LLVMSetInitializer(global, content);
	LLVMSetGlobalConstant(global, true);
	LLVMSetLinkage(global, LLVMPrivateLinkage);
	LLVMSetSection(global, SYMBOLIC_BITCODE_SECTION);
	LLVMSetAlignment(global, 8);
	keep(in, global);
	free(bytes);
	LLVMDisposeMemoryBuffer(buffer);
}

static void add_inline_state(struct instrumenter *in)
{
	LLVMTypeRef type = LLVMArrayType2(in->i8, sizeof(struct perdure_inline));

	in->inline_state = LLVMAddGlobal(in->module, type, "__perdure_inline");
	LLVMSetThreadLocalMode(in->inline_state, LLVMInitialExecTLSModel);
}

static bool run_passes(LLVMModuleRef module, const char *passes)
{
	LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
	LLVMErrorRef error = LLVMRunPasses(module, passes, NULL, options);

	LLVMDisposePassBuilderOptions(options);
	if (error) {
		char *text = LLVMGetErrorMessage(error);

		fprintf(stderr, "perdure-cc: internal error in \"%s\": %s\n", passes, text);
		LLVMDisposeErrorMessage(text);
		return false;
	}
	return true;
}

static void set_up(struct instrumenter *in, LLVMModuleRef module)
{
	size_t length;

	*in = (struct instrumenter){ .module = module };
	in->context = LLVMGetModuleContext(module);
	in->builder = LLVMCreateBuilderInContext(in->context);
	in->layout = LLVMGetModuleDataLayout(module);
	in->void_type = LLVMVoidTypeInContext(in->context);
	in->pointer = LLVMPointerTypeInContext(in->context, 0);
	in->i1 = LLVMInt1TypeInContext(in->context);
	in->i8 = LLVMInt8TypeInContext(in->context);
	in->i32 = LLVMInt32TypeInContext(in->context);
	in->i64 = LLVMInt64TypeInContext(in->context);
	/* Chains of different files should differ, too. */
	for (const char *name = LLVMGetModuleIdentifier(module, &length); *name; name++)
		in->chain = in->chain * 33 + (unsigned char)*name;
	in->chain *= PERDURE_CHAIN_STORES + 1;
	in->tbaa_kind = LLVMGetMDKindIDInContext(in->context, "tbaa", 4);
	in->nontemporal_kind = LLVMGetMDKindIDInContext(in->context, "nontemporal", 11);
}

bool instrument_module(LLVMModuleRef module, bool optimise, bool symbolic)
{
	struct instrumenter in;
	LLVMValueRef last;
	char *error = NULL;
	bool bad;

	if (LLVMGetNamedGlobal(module, NOTE))
		return true; /* bitcode that has been through here before */
	place_mark(module);
	if ((optimise || symbolic) && !run_passes(module, "function(mem2reg)"))
		return false;
	set_up(&in, module);
	keep_bodies(module);
	add_inline_state(&in);
	if (symbolic) {
		embed_bitcode(&in);
		symbolic_instrument(&in);
	}
	last = LLVMGetLastFunction(module);
	for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
		if (is_wanted(f))
			instrument_function(&in, f);
		if (f == last)
			break;
	}
	add_note(&in);
	LLVMDisposeBuilder(in.builder);
	bad = LLVMVerifyModule(module, LLVMReturnStatusAction, &error);
	if (bad)
		fprintf(stderr, "perdure-cc: internal error: %s\n", error);
	LLVMDisposeMessage(error);
	if (bad)
		return false;
	return run_passes(module, optimise ? "always-inline,function(simplifycfg,early-cse,"
					     "loop-simplify,lcssa,loop-mssa(loop-rotate,licm,"
					     "simple-loop-unswitch<nontrivial>))"
					   : "always-inline");
}
