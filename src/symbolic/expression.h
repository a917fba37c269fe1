/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Expressions over the bytes of the inputs: each exists once, simplified when it is made. They are
 * numbers, so that a forked process has the same ones. An assignment of the inputs, the model, goes
 * with them: it satisfies everything that the path has assumed so far.
 */
#ifndef SYMBOLIC_EXPRESSION_H
#define SYMBOLIC_EXPRESSION_H

#include <stdbool.h>

#include "symbolic/abi.h"

enum { EXPRESSION_INPUTS = 1 << 14, EXPRESSION_MANY = 0xffffffff };

struct expression {
	uint8_t op, width; /* bits, at most 64; conditions have one */
	uint32_t a, b, c;
	uint64_t constant; /* of an input: its number */
	uint64_t hash;     /* the same in every process */
	uint32_t only;     /* 1 + the one input it depends on; 0: none; or EXPRESSION_MANY */
	uint32_t next;
	uint32_t as_of; /* which model the value is for */
	uint32_t mark;
	uint64_t value;
};

extern struct expression *expressions;
extern uint32_t expression_count;
extern uint8_t expression_model[EXPRESSION_INPUTS];

/* False if there is no memory. */
bool expression_start(void);
uint32_t expression_constant(unsigned width, uint64_t value);
uint32_t expression_input(uint32_t number);
/* As in abi.h, all of them; `width` is that of the operands. Null operands where there are fewer.
 */
uint32_t expression_make(enum symbolic_op op, unsigned width, uint32_t a, uint32_t b);
uint32_t expression_if(uint32_t condition, uint32_t then, uint32_t otherwise);
uint32_t expression_extract(uint32_t a, unsigned low, unsigned width);
uint32_t expression_extend(enum symbolic_op op, uint32_t a, unsigned width);
uint32_t expression_not(uint32_t condition);
bool expression_is_constant(uint32_t e, uint64_t *value);
/* Under the model. */
uint64_t expression_value(uint32_t e);
/* The model has been changed. */
void expression_model_changed(void);
/* What an operation gives for these values; as the processor does where C leaves it open. */
uint64_t expression_compute(enum symbolic_op op, unsigned width, uint64_t a, uint64_t b);
/* What an expression is if its operands are these; of an input, `input`. */
uint64_t expression_apply(const struct expression *e, uint64_t a, uint64_t b, uint64_t c,
			  uint64_t input);

static inline const struct expression *expression_at(uint32_t e)
{
	return &expressions[e];
}

static inline uint64_t expression_mask(unsigned width)
{
	return width >= 64 ? ~0ull : (1ull << width) - 1;
}

static inline int64_t expression_signed(unsigned width, uint64_t value)
{
	return (int64_t)(value << (64 - width)) >> (64 - width);
}

#endif
