/* SPDX-License-Identifier: BSD-3-Clause */
#include "compile/order.h"

#include <stdlib.h>
#include <string.h>

struct seen {
	LLVMBasicBlockRef *slot;
	size_t size;
};

/* False if it was there already. */
static bool add(struct seen *seen, LLVMBasicBlockRef block)
{
	size_t at = ((uintptr_t)block >> 4) % seen->size;

	for (; seen->slot[at]; at = (at + 1) % seen->size)
		if (seen->slot[at] == block)
			return false;
	seen->slot[at] = block;
	return true;
}

static void *allocate(size_t count, size_t size)
{
	void *memory = calloc(count, size);

	if (!memory)
		abort();
	return memory;
}

static void reverse(struct order *order)
{
	for (size_t i = 0; i < order->count / 2; i++) {
		LLVMBasicBlockRef other = order->list[order->count - 1 - i];

		order->list[order->count - 1 - i] = order->list[i];
		order->list[i] = other;
	}
}

void order_blocks(LLVMValueRef function, struct order *order)
{
	size_t count = LLVMCountBasicBlocks(function), depth = 0;
	struct seen seen = { allocate(2 * count + 1, sizeof(*seen.slot)), 2 * count + 1 };
	struct item {
		LLVMBasicBlockRef block;
		unsigned next;
	} *stack = allocate(count + 1, sizeof(*stack));

	*order = (struct order){ allocate(count + 1, sizeof(*order->list)), 0 };
	stack[depth++].block = LLVMGetEntryBasicBlock(function);
	add(&seen, LLVMGetEntryBasicBlock(function));
	while (depth) {
		struct item *top = &stack[depth - 1];
		LLVMValueRef end = LLVMGetBasicBlockTerminator(top->block);

		if (end && top->next < LLVMGetNumSuccessors(end)) {
			LLVMBasicBlockRef next = LLVMGetSuccessor(end, top->next++);

			if (add(&seen, next))
				stack[depth++] = (struct item){ next, 0 };
			continue;
		}
		order->list[order->count++] = top->block;
		depth--;
	}
	reverse(order);
	free(stack);
	free(seen.slot);
}

bool order_is_wanted(LLVMValueRef function)
{
	unsigned naked = LLVMGetEnumAttributeKindForName("naked", 5);

	return !LLVMIsDeclaration(function) &&
	       strncmp(LLVMGetValueName(function), "__perdure", 9) != 0 &&
	       !LLVMGetEnumAttributeAtIndex(function, LLVMAttributeFunctionIndex, naked);
}

/* By the name of the file: modules have different ones. */
uint64_t order_first_site(LLVMModuleRef module)
{
	uint64_t hash = 14695981039346656037ull;
	size_t length;
	const char *name = LLVMGetSourceFileName(module, &length);

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)name[i]) * 1099511628211ull;
	return hash << 24;
}

unsigned order_sites(LLVMValueRef instruction)
{
	switch (LLVMGetInstructionOpcode(instruction)) {
	case LLVMBr:
		return LLVMIsConditional(instruction) ? 1 : 0;
	case LLVMSwitch:
		return LLVMGetNumSuccessors(instruction) - 1;
	default:
		return 0;
	}
}
