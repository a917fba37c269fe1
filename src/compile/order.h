/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The order in which the branches of a program are numbered, the same for the instrumentation and
 * for the analysis of the bitcode that it leaves behind.
 */
#ifndef COMPILE_ORDER_H
#define COMPILE_ORDER_H

#include <llvm-c/Core.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct order {
	LLVMBasicBlockRef *list;
	size_t count;
};

/* The blocks that can be reached, so that what a block uses comes before it, but for ways back.
 * Free the list. */
void order_blocks(LLVMValueRef function, struct order *order);
/* Is it instrumented at all? */
bool order_is_wanted(LLVMValueRef function);
/* The number of the first branch of a module; others follow in order. */
uint64_t order_first_site(LLVMModuleRef module);
/* How many numbers this instruction takes: a branch one, a switch one for each case. */
unsigned order_sites(LLVMValueRef instruction);

#endif
