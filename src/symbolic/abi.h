/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What `perdure-cc --symbolic` and the runtime agree on. A value of the program has a number beside
 * it: that of an expression over the inputs, or 0 if it is just what it is. Where the number is not
 * 0, what is in the register means nothing: whoever needs the value asks for it.
 */
#ifndef SYMBOLIC_ABI_H
#define SYMBOLIC_ABI_H

#include <stdint.h>

enum symbolic_op {
	SYMBOLIC_CONSTANT,
	SYMBOLIC_INPUT, /* one byte */
	SYMBOLIC_ADD,
	SYMBOLIC_SUB,
	SYMBOLIC_MUL,
	SYMBOLIC_UDIV,
	SYMBOLIC_SDIV,
	SYMBOLIC_UREM,
	SYMBOLIC_SREM,
	SYMBOLIC_SHL,
	SYMBOLIC_LSHR,
	SYMBOLIC_ASHR,
	SYMBOLIC_AND,
	SYMBOLIC_OR,
	SYMBOLIC_XOR,
	SYMBOLIC_EQ,
	SYMBOLIC_ULT,
	SYMBOLIC_ULE,
	SYMBOLIC_SLT,
	SYMBOLIC_SLE,
	SYMBOLIC_CONCAT, /* the first one is the upper part */
	SYMBOLIC_IF,
	SYMBOLIC_EXTRACT, /* from the bit that the second operand says */
	SYMBOLIC_ZEXT,
	SYMBOLIC_SEXT,
	SYMBOLIC_OPS,
	/* Only asked for: made of the others. */
	SYMBOLIC_NE = SYMBOLIC_OPS,
	SYMBOLIC_TRUNC,
	SYMBOLIC_BSWAP,
	SYMBOLIC_POPULATION,
	SYMBOLIC_LEADING,
	SYMBOLIC_TRAILING,
	SYMBOLIC_REVERSE,
	SYMBOLIC_ABS,
	SYMBOLIC_UMIN,
	SYMBOLIC_UMAX,
	SYMBOLIC_SMIN,
	SYMBOLIC_SMAX,
	/* Whether it does not fit. */
	SYMBOLIC_UADD_OVER,
	SYMBOLIC_SADD_OVER,
	SYMBOLIC_USUB_OVER,
	SYMBOLIC_SSUB_OVER,
	SYMBOLIC_UMUL_OVER,
	SYMBOLIC_SMUL_OVER,
	/* … and then the nearest that does. */
	SYMBOLIC_UADD_SAT,
	SYMBOLIC_SADD_SAT,
	SYMBOLIC_USUB_SAT,
	SYMBOLIC_SSUB_SAT,
};

/* Why a value was fixed: what is lost is counted. */
enum symbolic_loss {
	SYMBOLIC_LOST_CALL,    /* code that was not built with --symbolic */
	SYMBOLIC_LOST_FLOAT,   /* floating point, vectors, wide integers, assembly */
	SYMBOLIC_LOST_ADDRESS, /* too many that it could be */
	SYMBOLIC_LOST_SIZE,    /* of a copy or the like */
	SYMBOLIC_LOST_SOLVER,  /* took too long */
	SYMBOLIC_LOSSES,
};

enum {
	SYMBOLIC_ARGUMENTS = 16,
	SYMBOLIC_RESULTS = 4,     /* fields of a structure in registers */
	SYMBOLIC_PAGES = 1 << 16, /* one byte for all pages with the same number modulo this */
	SYMBOLIC_PAGE_SHIFT = 12,
};

/* How a caller tells its callee what it gives, and is told what it gets. */
struct symbolic_call {
	const void *callee; /* whom the arguments are for; null: none is symbolic */
	const void *from;   /* whose result this is */
	uint32_t result[SYMBOLIC_RESULTS];
	uint32_t argument[SYMBOLIC_ARGUMENTS];
};

/* What a function like printf was told, and where its va_list was. */
struct symbolic_variable {
	uint64_t registers, overflow;
	uint32_t fixed, unused;
	uint32_t argument[SYMBOLIC_ARGUMENTS];
};

/* Where perdure-cc keeps the bitcode of each file: a head, the bitcode, padding up to 8 bytes. */
#define SYMBOLIC_BITCODE_SECTION "perdure_bitcode"
#define SYMBOLIC_BITCODE_MAGIC 0x65646f6374696250ull

struct symbolic_bitcode {
	uint64_t magic, size;
};

#endif
