/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The flag behind redundant-fence: "this thread has stored something outside its stack since its
 * last fence". It is set before the first such store of a block, and again after every call or
 * fence in between. In a loop without calls it is set once, before the loop: a store in there
 * would keep the optimiser from vectorising.
 */
#include "compile/instrument.h"

#include "compile/assembly.h"

#include <stdlib.h>
#include <string.h>

struct block {
	LLVMBasicBlockRef block;
	bool stores;     /* has a store outside the stack */
	bool interrupts; /* has a call or a fence, which may reset the flag */
	bool hoisted;    /* the flag is set before the loop */
	/* Tarjan's algorithm, on the blocks of the current level */
	unsigned level, index, low;
	bool on_stack;
	bool member; /* of the component being looked at */
};

struct graph {
	struct instrumenter *in;
	struct block *block; /* sorted by address */
	size_t count;
	size_t *stack;
	size_t stacked;
	unsigned next_index, level;
};

static bool is_fence_like(LLVMValueRef call)
{
	LLVMValueRef callee = LLVMGetCalledValue(call);
	const char *name;

	if (LLVMIsAInlineAsm(callee))
		return true;
	if (!LLVMIsAFunction(callee) || !LLVMGetIntrinsicID(callee))
		return true;
	name = LLVMGetValueName(callee);
	return strstr(name, "fence") != NULL;
}

/* The pointer an instruction stores through, or null. */
static LLVMValueRef store_target(LLVMValueRef instruction)
{
	LLVMValueRef callee;
	const char *name;

	switch (LLVMGetInstructionOpcode(instruction)) {
	case LLVMStore:
		return LLVMGetOperand(instruction, 1);
	case LLVMAtomicRMW:
	case LLVMAtomicCmpXchg:
		return LLVMGetOperand(instruction, 0);
	case LLVMCall:
		callee = LLVMGetCalledValue(instruction);
		if (!LLVMIsAFunction(callee) || !LLVMGetIntrinsicID(callee))
			return NULL;
		name = LLVMGetValueName(callee);
		if (strncmp(name, "llvm.mem", 8) == 0)
			return LLVMGetOperand(instruction, 0);
		if (strncmp(name, "llvm.masked.store", 17) == 0)
			return LLVMGetOperand(instruction, 1);
		return NULL;
	default:
		return NULL;
	}
}

/* Functions of libc and libstdc++ that store outside the caller's stack: the runtime sees only
 * some. */
static bool is_storing_library_call(LLVMValueRef call)
{
	static const char *const prefixes[] = {
		"str",     "mem",      "wcs",    "wmem",    "qsort",   "put",     "fput",
		"print",   "fprint",   "vprint", "vfprint", "sprint",  "snprint", "vsnprint",
		"scanf",   "sscanf",   "fscanf", "__isoc",  "fread",   "fwrite",  "fget",
		"getline", "getdelim", "malloc", "calloc",  "realloc", "free",    "read",
		"pread",   "recv",     "write",  "send",    "setenv",  "time",    "gettime",
		"clock_",  "_Znw",     "_Zna",   "_Zdl",    "_Zda",    "_ZNSt",   "_ZSt",
		"_ZNKSt",  "__cxa_",   "frexp",  "modf",    "sincos",  "atexit",
	};
	LLVMValueRef callee = LLVMGetCalledValue(call);
	const char *name;

	if (!LLVMIsAFunction(callee) || !LLVMIsDeclaration(callee) || LLVMGetIntrinsicID(callee))
		return false;
	name = LLVMGetValueName(callee);
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

/* Assembly that may store anywhere, or through an operand that is not on the stack. */
static bool is_storing_assembly(LLVMValueRef call)
{
	LLVMValueRef code = LLVMGetCalledValue(call);
	size_t length, text_length;
	const char *constraints, *text;
	struct assembly a;

	if (!LLVMIsAInlineAsm(code))
		return false;
	text = LLVMGetInlineAsmAsmString(code, &text_length);
	constraints = LLVMGetInlineAsmConstraintString(code, &length);
	assembly_parse(text, text_length, constraints, length, &a);
	for (unsigned i = 0; i < a.effects; i++)
		if (a.effect[i].kind == EFFECT_STORE || a.effect[i].kind == EFFECT_STRING_STORE)
			return true;
	return a.unknown;
}

/* The flag is set behind a call: it may contain a fence before the store. */
static bool stores_in_call(LLVMValueRef instruction)
{
	return LLVMIsACallInst(instruction) &&
	       (is_storing_assembly(instruction) || is_storing_library_call(instruction));
}

static bool is_outside_store(LLVMValueRef instruction)
{
	LLVMValueRef target = store_target(instruction);

	return target && !access_is_stack(access_base(target));
}

static bool is_interruption(LLVMValueRef instruction)
{
	switch (LLVMGetInstructionOpcode(instruction)) {
	case LLVMFence:
		return true;
	case LLVMCall:
	case LLVMInvoke:
	case LLVMCallBr:
		return is_fence_like(instruction);
	default:
		return false;
	}
}

static int compare_blocks(const void *a, const void *b)
{
	const struct block *x = a, *y = b;

	return x->block < y->block ? -1 : x->block > y->block;
}

static struct block *find(struct graph *graph, LLVMBasicBlockRef block)
{
	struct block key = { .block = block };

	return bsearch(&key, graph->block, graph->count, sizeof(key), compare_blocks);
}

static void collect(struct graph *graph, LLVMValueRef function)
{
	size_t i = 0;

	for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(function); b;
	     b = LLVMGetNextBasicBlock(b)) {
		struct block *block = &graph->block[i++];

		block->block = b;
		for (LLVMValueRef in = LLVMGetFirstInstruction(b); in;
		     in = LLVMGetNextInstruction(in)) {
			block->stores |= is_outside_store(in) || stores_in_call(in);
			block->interrupts |= is_interruption(in);
		}
	}
	qsort(graph->block, graph->count, sizeof(*graph->block), compare_blocks);
}

/* ---- loops ---- */

static void mark_members(struct graph *graph, size_t from, bool member)
{
	for (size_t i = from; i < graph->stacked; i++)
		graph->block[graph->stack[i]].member = member;
}

/* Calls `visit` for every block outside the component with an edge into it. */
static bool each_entry(struct graph *graph,
		       bool (*visit)(struct graph *, struct block *outside, struct block *inside))
{
	for (size_t b = 0; b < graph->count; b++) {
		struct block *outside = &graph->block[b];
		LLVMValueRef end = LLVMGetBasicBlockTerminator(outside->block);

		if (outside->member)
			continue;
		for (unsigned s = 0; end && s < LLVMGetNumSuccessors(end); s++) {
			struct block *inside = find(graph, LLVMGetSuccessor(end, s));

			if (inside->member && !visit(graph, outside, inside))
				return false;
		}
	}
	return true;
}

static bool can_hoist(struct graph *graph, struct block *outside, struct block *inside)
{
	LLVMValueRef end = LLVMGetBasicBlockTerminator(outside->block);

	(void)graph;
	(void)inside;
	return LLVMGetInstructionOpcode(end) == LLVMBr ||
	       LLVMGetInstructionOpcode(end) == LLVMSwitch;
}

static bool hoist(struct graph *graph, struct block *outside, struct block *inside)
{
	(void)inside;
	instrument_before(graph->in, LLVMGetBasicBlockTerminator(outside->block));
	helper_stored(graph->in);
	return true;
}

/* Loops in loops: without its entry blocks, what remains of the component may have cycles. */
static bool drop_entry(struct graph *graph, struct block *outside, struct block *inside)
{
	(void)outside;
	inside->level = graph->level;
	return true;
}

/* A cycle of blocks, on the stack from `from`. */
static void component(struct graph *graph, size_t from)
{
	bool stores = false, interrupts = false;

	for (size_t i = from; i < graph->stacked; i++) {
		stores |= graph->block[graph->stack[i]].stores;
		interrupts |= graph->block[graph->stack[i]].interrupts;
	}
	if (!stores)
		return;
	mark_members(graph, from, true);
	if (!interrupts && each_entry(graph, can_hoist)) {
		each_entry(graph, hoist);
		for (size_t i = from; i < graph->stacked; i++)
			graph->block[graph->stack[i]].hoisted = true;
		mark_members(graph, from, false);
		return;
	}
	for (size_t i = from; i < graph->stacked; i++)
		graph->block[graph->stack[i]].level = graph->level + 1;
	each_entry(graph, drop_entry);
	mark_members(graph, from, false);
}

static bool has_self_edge(struct block *block)
{
	LLVMValueRef end = LLVMGetBasicBlockTerminator(block->block);

	for (unsigned s = 0; end && s < LLVMGetNumSuccessors(end); s++)
		if (LLVMGetSuccessor(end, s) == block->block)
			return true;
	return false;
}

/* Recursion as deep as the longest path: functions are small enough, and the limit guards it. */
enum { DEPTH_LIMIT = 4000 };

static void visit(struct graph *graph, struct block *block, unsigned depth)
{
	LLVMValueRef end = LLVMGetBasicBlockTerminator(block->block);
	size_t at = graph->stacked;

	block->index = block->low = ++graph->next_index;
	block->on_stack = true;
	graph->stack[graph->stacked++] = block - graph->block;
	for (unsigned s = 0; end && depth < DEPTH_LIMIT && s < LLVMGetNumSuccessors(end); s++) {
		struct block *next = find(graph, LLVMGetSuccessor(end, s));

		if (next->level != graph->level)
			continue;
		if (!next->index) {
			visit(graph, next, depth + 1);
			if (next->low < block->low)
				block->low = next->low;
		} else if (next->on_stack && next->index < block->low) {
			block->low = next->index;
		}
	}
	if (block->low != block->index)
		return;
	if (graph->stacked - at > 1 || has_self_edge(block))
		component(graph, at);
	for (size_t i = at; i < graph->stacked; i++)
		graph->block[graph->stack[i]].on_stack = false;
	graph->stacked = at;
}

static void find_loops(struct graph *graph)
{
	bool again = true;

	for (graph->level = 0; again && graph->level < 8; graph->level++) {
		again = false;
		for (size_t i = 0; i < graph->count; i++)
			graph->block[i].index = 0;
		for (size_t i = 0; i < graph->count; i++)
			if (graph->block[i].level == graph->level && !graph->block[i].index) {
				visit(graph, &graph->block[i], 0);
				again = true;
			}
	}
}

/* ---- straight code ---- */

static void set_in_block(struct instrumenter *in, const struct block *block)
{
	bool set = false;

	for (LLVMValueRef i = LLVMGetFirstInstruction(block->block); i;
	     i = LLVMGetNextInstruction(i)) {
		if (stores_in_call(i)) {
			instrument_after(in, i);
			helper_stored(in);
			set = true;
		} else if (is_interruption(i)) {
			set = false;
		} else if (!set && is_outside_store(i)) {
			instrument_before(in, i);
			helper_stored(in);
			set = true;
		}
	}
}

void instrument_stored(struct instrumenter *in, LLVMValueRef function)
{
	struct graph graph = { .in = in, .count = LLVMCountBasicBlocks(function) };

	graph.block = calloc(graph.count, sizeof(*graph.block));
	graph.stack = calloc(graph.count, sizeof(*graph.stack));
	if (!graph.block || !graph.stack)
		abort();
	collect(&graph, function);
	find_loops(&graph);
	for (size_t i = 0; i < graph.count; i++)
		if (graph.block[i].stores && !graph.block[i].hoisted)
			set_in_block(in, &graph.block[i]);
	free(graph.block);
	free(graph.stack);
}
