/* SPDX-License-Identifier: BSD-3-Clause */
/* Inline assembly, taken apart: text only, no LLVM. */
#ifndef COMPILE_ASSEMBLY_H
#define COMPILE_ASSEMBLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "perdure/event.h"

enum { ASSEMBLY_OPERANDS = 32, ASSEMBLY_EFFECTS = 32 };

/* One constraint. `argument` is the index of the call's argument, -1 for a direct output. */
struct assembly_operand {
	bool output, indirect;
	int argument;
	int tied; /* input that must equal this output: the output's number, or -1 */
	char reg; /* 'a' 'b' 'c' 'd' 'S' 'D' for a fixed register, 0 otherwise */
};

enum assembly_effect_kind {
	EFFECT_FLUSH,
	EFFECT_FENCE,
	EFFECT_LOAD,
	EFFECT_STORE,
	EFFECT_STRING_STORE, /* rep stos, rep movs: through D, c elements of `size` */
	EFFECT_STRING_LOAD,  /* rep movs: through S */
};

/* What one instruction does to memory, through the operand number `operand`. */
struct assembly_effect {
	enum assembly_effect_kind kind;
	int operand;
	bool through_register; /* the operand holds the address; otherwise it is the memory */
	int64_t displacement;
	uint32_t size;  /* 0: that of the operand width_of, or the operand's own */
	int width_of;   /* the register operand that the instruction moves, or -1 */
	uint32_t flags; /* enum perdure_access_flag */
	int detail;     /* enum perdure_flush or perdure_fence */
};

struct assembly {
	unsigned operands, effects, arguments;
	struct assembly_operand operand[ASSEMBLY_OPERANDS];
	struct assembly_effect effect[ASSEMBLY_EFFECTS];
	bool locked;       /* contains a locked instruction */
	bool unknown;      /* touches memory in a way that is not in the effects */
	bool only_flush;   /* a single flush and nothing else */
	bool unrecognised; /* contains an instruction that is in no table */
	bool clobbers_memory;
	bool client_request; /* Valgrind's magic sequence */
	bool has_label;
	bool pauses; /* waits for another thread */
};

/* Parses LLVM's form of a template and its constraints. */
void assembly_parse(const char *text, size_t text_length, const char *constraints,
		    size_t constraints_length, struct assembly *result);

#endif
