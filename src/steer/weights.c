/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The weight of a block is how many instructions that change PM can still come: those of the block,
 * of what it calls, and the most that any way on has; in a loop, those of the whole loop once. What
 * comes after the function has returned is that of the caller that has most left.
 */
#include <llvm-c/DebugInfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compile/order.h"
#include "steer/program.h"

enum { ROUNDS = 8, MOST = 1 << 20 };

struct block {
	LLVMBasicBlockRef block;
	uint32_t own;    /* instructions that change PM */
	uint32_t weight; /* with what can follow in this function */
	uint32_t component, index, low;
	bool on_stack;
};

struct function {
	struct order order;
	struct block *block;
	uint32_t total; /* at its entry */
	uint32_t after; /* its callers, when it returns */
};

static const struct program *whole;
static struct function *functions;

static uint32_t at_most(uint64_t weight)
{
	return weight > MOST ? MOST : (uint32_t)weight;
}

static struct block *block_of(struct function *f, LLVMBasicBlockRef block)
{
	for (size_t i = 0; i < f->order.count; i++)
		if (f->block[i].block == block)
			return &f->block[i];
	return NULL;
}

/* ---- loops: Tarjan's components, which come out with the last ones first ---- */

struct search {
	struct function *f;
	uint32_t *stack;
	size_t depth;
	uint32_t index, components;
};

static void connect(struct search *s, uint32_t at)
{
	struct block *b = &s->f->block[at];
	LLVMValueRef end = LLVMGetBasicBlockTerminator(b->block);

	b->index = b->low = ++s->index;
	b->on_stack = true;
	s->stack[s->depth++] = at;
	for (unsigned i = 0; end && i < LLVMGetNumSuccessors(end); i++) {
		struct block *next = block_of(s->f, LLVMGetSuccessor(end, i));

		if (!next->index)
			connect(s, (uint32_t)(next - s->f->block));
		if (next->on_stack && next->low < b->low)
			b->low = next->low;
	}
	if (b->low != b->index)
		return;
	s->components++;
	do {
		b = &s->f->block[s->stack[--s->depth]];
		b->on_stack = false;
		b->component = s->components;
	} while (b != &s->f->block[at]);
}

static void find_loops(struct function *f)
{
	struct search s = { .f = f, .stack = calloc(f->order.count + 1, sizeof(*s.stack)) };

	if (!s.stack)
		abort();
	for (size_t i = 0; i < f->order.count; i++)
		if (!f->block[i].index)
			connect(&s, (uint32_t)i);
	free(s.stack);
}

/* ---- weights ---- */

static void add_total(long number, void *context)
{
	uint32_t *most = context;

	if (functions[number].total > *most)
		*most = functions[number].total;
}

static uint64_t weigh_block(const struct block *b)
{
	uint64_t weight = b->own;

	for (LLVMValueRef i = LLVMGetFirstInstruction(b->block); i; i = LLVMGetNextInstruction(i)) {
		uint32_t most = 0;

		if (is_call(i))
			points_each_callee(whole, i, add_total, &most);
		weight += most;
	}
	return weight;
}

/* Components are numbered from the end, so what follows is known already. */
static void weigh_function(struct function *f)
{
	uint32_t components = 0;

	for (size_t i = 0; i < f->order.count; i++)
		if (f->block[i].component > components)
			components = f->block[i].component;
	for (uint32_t c = 1; c <= components; c++) {
		uint64_t own = 0, next = 0;

		for (size_t i = 0; i < f->order.count; i++) {
			LLVMValueRef end;

			if (f->block[i].component != c)
				continue;
			own += weigh_block(&f->block[i]);
			end = LLVMGetBasicBlockTerminator(f->block[i].block);
			for (unsigned n = 0; end && n < LLVMGetNumSuccessors(end); n++) {
				const struct block *other = block_of(f, LLVMGetSuccessor(end, n));

				if (other->component != c && other->weight > next)
					next = other->weight;
			}
		}
		for (size_t i = 0; i < f->order.count; i++)
			if (f->block[i].component == c)
				f->block[i].weight = at_most(own + next);
	}
	f->total = f->order.count ? f->block[0].weight : 0;
}

struct caller {
	uint32_t left;
	bool changed;
};

static void return_to(long number, void *context)
{
	struct caller *caller = context;

	if (caller->left > functions[number].after) {
		functions[number].after = caller->left;
		caller->changed = true;
	}
}

static bool weigh_returns(struct function *f)
{
	struct caller caller = { 0 };

	for (size_t b = 0; b < f->order.count; b++)
		for (LLVMValueRef i = LLVMGetFirstInstruction(f->block[b].block); i;
		     i = LLVMGetNextInstruction(i)) {
			caller.left = at_most((uint64_t)f->block[b].weight + f->after);
			if (is_call(i))
				points_each_callee(whole, i, return_to, &caller);
		}
	return caller.changed;
}

/* ---- writing ---- */

static void write_way(uint64_t site, unsigned way, const struct function *f, const struct block *b)
{
	printf("w %lx %u %u\n", site, way, at_most((uint64_t)b->weight + f->after));
}

static uint32_t most_of(struct function *f, LLVMValueRef end, unsigned from)
{
	uint32_t most = block_of(f, LLVMGetSuccessor(end, 0))->weight;

	for (unsigned i = from; i < LLVMGetNumSuccessors(end); i++) {
		uint32_t weight = block_of(f, LLVMGetSuccessor(end, i))->weight;

		most = weight > most ? weight : most;
	}
	return most;
}

/* A switch is decided one case after the other: this one, or any of those that are left. */
static void write_switch(struct function *f, LLVMValueRef end, uint64_t site)
{
	for (unsigned i = 1; i < LLVMGetNumSuccessors(end); i++) {
		write_way(site + i - 1, 1, f, block_of(f, LLVMGetSuccessor(end, i)));
		printf("w %lx 0 %u\n", site + i - 1,
		       at_most((uint64_t)most_of(f, end, i + 1) + f->after));
	}
}

static void write_place(LLVMValueRef i)
{
	unsigned line = LLVMGetDebugLocLine(i), length = 0;
	const char *file = line ? LLVMGetDebugLocFilename(i, &length) : NULL;

	if (file)
		printf("p %u %u %.*s\n", line, LLVMGetDebugLocColumn(i), (int)length, file);
}

/* What stands in for libc in such builds is none of the user's business. */
static bool is_own_libc(LLVMBasicBlockRef block)
{
	LLVMModuleRef module = LLVMGetGlobalParent(LLVMGetBasicBlockParent(block));
	size_t length;

	return strstr(LLVMGetSourceFileName(module, &length), "/symbolic/libc/");
}

/* Calls of functions of which nobody knows what they do may change PM, but seldom do. */
static bool is_reported(LLVMValueRef i)
{
	static const char *const writers[] = { "pmem",    "mem",     "strcpy", "strncpy",
					       "strcat",  "strncat", "stpcpy", "snprintf",
					       "sprintf", "read",    "pread",  "recv" };
	LLVMValueRef callee = is_call(i) ? LLVMGetCalledValue(i) : NULL;

	if (!callee || LLVMIsAInlineAsm(callee) || !LLVMIsAFunction(callee) ||
	    LLVMGetIntrinsicID(callee))
		return true;
	for (size_t n = 0; n < sizeof(writers) / sizeof(*writers); n++)
		if (strncmp(LLVMGetValueName(callee), writers[n], strlen(writers[n])) == 0)
			return true;
	return false;
}

static void write_places(struct function *f, const struct guarded *blocks)
{
	for (size_t b = 0; b < f->order.count; b++)
		for (LLVMValueRef i = LLVMGetFirstInstruction(f->block[b].block); i;
		     i = LLVMGetNextInstruction(i))
			if (points_changes_pm(i) && is_reported(i) &&
			    !is_own_libc(f->block[b].block)) {
				write_place(i);
				guards_write(blocks, f->order.count, b);
			}
}

static void write_function(struct function *f, uint64_t *site)
{
	struct guarded *blocks = calloc(f->order.count + 1, sizeof(*blocks));

	if (!blocks)
		abort();
	for (size_t b = 0; b < f->order.count; b++)
		for (LLVMValueRef i = LLVMGetFirstInstruction(f->block[b].block); i;
		     i = LLVMGetNextInstruction(i)) {
			blocks[b] = (struct guarded){ f->block[b].block, *site };
			if (LLVMGetInstructionOpcode(i) == LLVMBr && order_sites(i)) {
				write_way(*site, 1, f, block_of(f, LLVMGetSuccessor(i, 0)));
				write_way(*site, 0, f, block_of(f, LLVMGetSuccessor(i, 1)));
			} else if (LLVMGetInstructionOpcode(i) == LLVMSwitch) {
				write_switch(f, i, *site);
			}
			*site += order_sites(i);
		}
	write_places(f, blocks);
	free(blocks);
}

static void prepare(struct function *f, LLVMValueRef value)
{
	order_blocks(value, &f->order);
	f->block = calloc(f->order.count + 1, sizeof(*f->block));
	if (!f->block)
		abort();
	for (size_t b = 0; b < f->order.count; b++) {
		f->block[b].block = f->order.list[b];
		for (LLVMValueRef i = LLVMGetFirstInstruction(f->order.list[b]); i;
		     i = LLVMGetNextInstruction(i))
			f->block[b].own += points_changes_pm(i);
	}
	find_loops(f);
}

void weights_write(const struct program *program)
{
	size_t number = 0;
	bool more = true;

	whole = program;
	functions = calloc(program->functions + 1, sizeof(*functions));
	if (!functions)
		abort();
	for (size_t f = 0; f < program->functions; f++)
		prepare(&functions[f], program->function[f]);
	/* Recursion would never end; and nobody needs more than an order of magnitude. */
	for (unsigned round = 0; round < ROUNDS; round++)
		for (size_t f = 0; f < program->functions; f++)
			weigh_function(&functions[f]);
	for (unsigned round = 0; more && round < ROUNDS; round++) {
		more = false;
		for (size_t f = 0; f < program->functions; f++)
			more |= weigh_returns(&functions[f]);
	}
	for (size_t m = 0; m < program->modules; m++) {
		uint64_t site = order_first_site(program->module[m]);

		for (LLVMValueRef f = LLVMGetFirstFunction(program->module[m]); f;
		     f = LLVMGetNextFunction(f))
			if (order_is_wanted(f))
				write_function(&functions[number++], &site);
	}
}
