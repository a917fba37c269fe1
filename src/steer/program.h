/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perdure-steer: the analysis of a whole program that steers `perdure explore` to where PM is
 * changed, after agamotto.txt §4.3. Reads the bitcode that `perdure-cc --symbolic` has left in the
 * program and its libraries, and writes a weight for each way of each branch.
 *
 *   program.c   the bitcode, and which function a name means
 *   points.c    what pointers may point to, and what of that may be PM
 *   weights.c   how much of PM can be changed behind each branch
 *   guards.c    which branches decide whether a place is reached
 */
#ifndef STEER_PROGRAM_H
#define STEER_PROGRAM_H

#include <llvm-c/Core.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct program {
	LLVMContextRef context;
	LLVMModuleRef *module;
	size_t modules;
	LLVMValueRef *function; /* with a body */
	size_t functions;
	bool heap; /* malloc is PM */
};

/* Adds the bitcode of an ELF file; false if it cannot be read. One without any adds nothing. */
bool program_add(struct program *program, const char *path);
/* All files are there. */
void program_index(struct program *program);
/* The body that a function of this name has, in whatever file; null if there is none. */
LLVMValueRef program_body(const struct program *program, LLVMValueRef function);
/* Its number among the functions; -1 if it has no body. */
long program_number(const struct program *program, LLVMValueRef function);

/* ---- points.c ---- */

void points_find(const struct program *program);
/* May this instruction change PM, write it back, or order that? */
bool points_changes_pm(LLVMValueRef instruction);
/* Calls the function with the number of each body that a call may reach. */
void points_each_callee(const struct program *program, LLVMValueRef call,
			void (*each)(long number, void *context), void *context);

/* ---- guards.c ---- */

/* A block of a function, and the number of the branch at its end. */
struct guarded {
	LLVMBasicBlockRef block;
	uint64_t site;
};

/* The branches that decide whether this one of the blocks is reached. */
void guards_write(const struct guarded *blocks, size_t count, size_t to);

/* ---- weights.c ---- */

/*
 * Writes them to standard output, as text: "w SITE WAY WEIGHT" and "p LINE COLUMN FILE", and behind
 * each of these "g SITE WAY LINE COLUMN FILE" for branches that have to be taken to get there.
 */
void weights_write(const struct program *program);

static inline bool is_call(LLVMValueRef instruction)
{
	return LLVMIsACallInst(instruction) || LLVMIsAInvokeInst(instruction);
}

#endif
