/* SPDX-License-Identifier: BSD-3-Clause */
#include "symbolic/derived.h"

static uint32_t count_bits(unsigned width, uint32_t a)
{
	uint32_t sum = expression_constant(width, 0);

	for (unsigned i = 0; i < width; i++)
		sum = expression_make(
			SYMBOLIC_ADD, width, sum,
			expression_extend(SYMBOLIC_ZEXT, expression_extract(a, i, 1), width));
	return sum;
}

/* The number of zeros before the first one, from one end or the other. */
static uint32_t count_zeros(unsigned width, uint32_t a, bool from_top)
{
	uint32_t result = expression_constant(width, width);

	for (unsigned i = 0; i < width; i++) {
		unsigned bit = from_top ? i : width - 1 - i;

		result = expression_if(expression_extract(a, bit, 1),
				       expression_constant(width, width - 1 - i), result);
	}
	return result;
}

static uint32_t reverse(unsigned width, uint32_t a, unsigned piece)
{
	uint32_t result = expression_extract(a, 0, piece);

	for (unsigned at = piece; at < width; at += piece)
		result = expression_make(SYMBOLIC_CONCAT, 0, result,
					 expression_extract(a, at, piece));
	return result;
}

static uint32_t is_negative(unsigned width, uint32_t a)
{
	return expression_extract(a, width - 1, 1);
}

/* Of multiplications up to 32 bits; of wider ones by dividing again. */
static uint32_t multiplies_over(bool with_sign, unsigned width, uint32_t a, uint32_t b)
{
	enum symbolic_op extend = with_sign ? SYMBOLIC_SEXT : SYMBOLIC_ZEXT;
	uint32_t product = expression_make(SYMBOLIC_MUL, width, a, b), quotient, over;

	if (width <= 32) {
		uint32_t wide = expression_make(SYMBOLIC_MUL, 2 * width,
						expression_extend(extend, a, 2 * width),
						expression_extend(extend, b, 2 * width));

		return expression_not(
			expression_make(SYMBOLIC_EQ, 2 * width, wide,
					expression_extend(extend, product, 2 * width)));
	}
	quotient = expression_make(with_sign ? SYMBOLIC_SDIV : SYMBOLIC_UDIV, width, product, b);
	over = expression_make(SYMBOLIC_AND, 1,
			       expression_not(expression_make(SYMBOLIC_EQ, width, b,
							      expression_constant(width, 0))),
			       expression_not(expression_make(SYMBOLIC_EQ, width, quotient, a)));
	if (!with_sign)
		return over;
	/* The one quotient that does not fit either. */
	return expression_make(
		SYMBOLIC_OR, 1, over,
		expression_make(
			SYMBOLIC_AND, 1,
			expression_make(SYMBOLIC_EQ, width, b, expression_constant(width, ~0ull)),
			expression_make(SYMBOLIC_EQ, width, a,
					expression_constant(width, 1ull << (width - 1)))));
}

static uint32_t does_not_fit(enum symbolic_op op, unsigned width, uint32_t a, uint32_t b)
{
	uint32_t r;

	switch (op) {
	case SYMBOLIC_UADD_OVER:
		return expression_make(SYMBOLIC_ULT, width,
				       expression_make(SYMBOLIC_ADD, width, a, b), a);
	case SYMBOLIC_USUB_OVER:
		return expression_make(SYMBOLIC_ULT, width, a, b);
	case SYMBOLIC_SADD_OVER:
		r = expression_make(SYMBOLIC_ADD, width, a, b);
		return is_negative(width,
				   expression_make(SYMBOLIC_AND, width,
						   expression_make(SYMBOLIC_XOR, width, a, r),
						   expression_make(SYMBOLIC_XOR, width, b, r)));
	case SYMBOLIC_SSUB_OVER:
		r = expression_make(SYMBOLIC_SUB, width, a, b);
		return is_negative(width,
				   expression_make(SYMBOLIC_AND, width,
						   expression_make(SYMBOLIC_XOR, width, a, b),
						   expression_make(SYMBOLIC_XOR, width, a, r)));
	default:
		return multiplies_over(op == SYMBOLIC_SMUL_OVER, width, a, b);
	}
}

static uint32_t saturate(enum symbolic_op op, unsigned width, uint32_t a, uint32_t b)
{
	bool adds = op == SYMBOLIC_UADD_SAT || op == SYMBOLIC_SADD_SAT;
	bool with_sign = op == SYMBOLIC_SADD_SAT || op == SYMBOLIC_SSUB_SAT;
	enum symbolic_op over = adds        ? with_sign ? SYMBOLIC_SADD_OVER : SYMBOLIC_UADD_OVER
				: with_sign ? SYMBOLIC_SSUB_OVER
					    : SYMBOLIC_USUB_OVER;
	uint64_t top = 1ull << (width - 1);
	uint32_t limit =
		with_sign ? expression_if(is_negative(width, a), expression_constant(width, top),
					  expression_constant(width, top - 1))
			  : expression_constant(width, adds ? ~0ull : 0);

	return expression_if(does_not_fit(over, width, a, b), limit,
			     expression_make(adds ? SYMBOLIC_ADD : SYMBOLIC_SUB, width, a, b));
}

uint32_t derived_make(enum symbolic_op op, unsigned width, uint32_t a, uint32_t b)
{
	switch (op) {
	case SYMBOLIC_NE:
		return expression_not(expression_make(SYMBOLIC_EQ, width, a, b));
	case SYMBOLIC_BSWAP:
		return reverse(width, a, 8);
	case SYMBOLIC_REVERSE:
		return reverse(width, a, 1);
	case SYMBOLIC_POPULATION:
		return count_bits(width, a);
	case SYMBOLIC_LEADING:
		return count_zeros(width, a, true);
	case SYMBOLIC_TRAILING:
		return count_zeros(width, a, false);
	case SYMBOLIC_ABS:
		return expression_if(
			is_negative(width, a),
			expression_make(SYMBOLIC_SUB, width, expression_constant(width, 0), a), a);
	case SYMBOLIC_UMIN:
		return expression_if(expression_make(SYMBOLIC_ULT, width, a, b), a, b);
	case SYMBOLIC_UMAX:
		return expression_if(expression_make(SYMBOLIC_ULT, width, a, b), b, a);
	case SYMBOLIC_SMIN:
		return expression_if(expression_make(SYMBOLIC_SLT, width, a, b), a, b);
	case SYMBOLIC_SMAX:
		return expression_if(expression_make(SYMBOLIC_SLT, width, a, b), b, a);
	case SYMBOLIC_UADD_OVER:
	case SYMBOLIC_SADD_OVER:
	case SYMBOLIC_USUB_OVER:
	case SYMBOLIC_SSUB_OVER:
	case SYMBOLIC_UMUL_OVER:
	case SYMBOLIC_SMUL_OVER:
		return does_not_fit(op, width, a, b);
	case SYMBOLIC_UADD_SAT:
	case SYMBOLIC_SADD_SAT:
	case SYMBOLIC_USUB_SAT:
	case SYMBOLIC_SSUB_SAT:
		return saturate(op, width, a, b);
	default:
		return 0; /* there are no others */
	}
}
