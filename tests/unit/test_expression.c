/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Expressions, which are simplified when they are made, against numbers: what they are under some
 * models must be what the processor makes of these. And paths over one byte against all its values.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "symbolic/path.h"

enum { MODELS = 8, INPUTS = 6, NODES = 400, ROUNDS = 150 };

static uint64_t seed = 1;

static uint64_t chance(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static uint8_t model[MODELS][INPUTS];

struct known {
	uint32_t e;
	unsigned width;
	uint64_t value[MODELS];
};

static int64_t with_sign(uint64_t value, unsigned width)
{
	return width < 64 && value >> (width - 1) & 1 ? (int64_t)(value | ~0ull << width)
						      : (int64_t)value;
}

static bool bit(uint64_t value, unsigned i)
{
	return value >> i & 1;
}

/* Not as expression.c has it: from what the words mean. */
static uint64_t reference(enum symbolic_op op, unsigned width, uint64_t a, uint64_t b)
{
	__int128 x = with_sign(a, width), y = with_sign(b, width);
	__int128 top = (__int128)1 << (width - 1);
	unsigned __int128 product = (unsigned __int128)a * b;
	unsigned n = 0;

	switch (op) {
	case SYMBOLIC_ADD:
		return a + b;
	case SYMBOLIC_SUB:
		return a - b;
	case SYMBOLIC_MUL:
		return (uint64_t)product;
	case SYMBOLIC_UDIV:
		return b ? a / b : ~0ull;
	case SYMBOLIC_UREM:
		return b ? a % b : a;
	case SYMBOLIC_SDIV:
		return b ? (uint64_t)(x / y) : x < 0 ? 1 : ~0ull;
	case SYMBOLIC_SREM:
		return b ? (uint64_t)(x % y) : a;
	case SYMBOLIC_SHL:
		return b < width ? a << b : 0;
	case SYMBOLIC_LSHR:
		return b < width ? a >> b : 0;
	case SYMBOLIC_ASHR:
		return (uint64_t)(x >> (b < width ? b : width - 1));
	case SYMBOLIC_AND:
		return a & b;
	case SYMBOLIC_OR:
		return a | b;
	case SYMBOLIC_XOR:
		return a ^ b;
	case SYMBOLIC_EQ:
		return a == b;
	case SYMBOLIC_NE:
		return a != b;
	case SYMBOLIC_ULT:
		return a < b;
	case SYMBOLIC_ULE:
		return a <= b;
	case SYMBOLIC_SLT:
		return x < y;
	case SYMBOLIC_SLE:
		return x <= y;
	case SYMBOLIC_POPULATION:
		return (uint64_t)__builtin_popcountll(a);
	case SYMBOLIC_LEADING:
		while (n < width && !bit(a, width - 1 - n))
			n++;
		return n;
	case SYMBOLIC_TRAILING:
		while (n < width && !bit(a, n))
			n++;
		return n;
	case SYMBOLIC_ABS:
		return x < 0 ? 0 - a : a;
	case SYMBOLIC_UMIN:
		return a < b ? a : b;
	case SYMBOLIC_UMAX:
		return a < b ? b : a;
	case SYMBOLIC_SMIN:
		return x < y ? a : b;
	case SYMBOLIC_SMAX:
		return x < y ? b : a;
	case SYMBOLIC_UADD_OVER:
		return (unsigned __int128)a + b > expression_mask(width);
	case SYMBOLIC_USUB_OVER:
		return a < b;
	case SYMBOLIC_UMUL_OVER:
		return product > expression_mask(width);
	case SYMBOLIC_SADD_OVER:
		return x + y >= top || x + y < -top;
	case SYMBOLIC_SSUB_OVER:
		return x - y >= top || x - y < -top;
	case SYMBOLIC_SMUL_OVER:
		return x * y >= top || x * y < -top;
	case SYMBOLIC_UADD_SAT:
		return (unsigned __int128)a + b > expression_mask(width) ? ~0ull : a + b;
	case SYMBOLIC_USUB_SAT:
		return a < b ? 0 : a - b;
	case SYMBOLIC_SADD_SAT:
		return (uint64_t)(x + y >= top ? top - 1 : x + y < -top ? -top : x + y);
	case SYMBOLIC_SSUB_SAT:
		return (uint64_t)(x - y >= top ? top - 1 : x - y < -top ? -top : x - y);
	default:
		return 0;
	}
}

static bool is_condition(enum symbolic_op op)
{
	return (op >= SYMBOLIC_EQ && op <= SYMBOLIC_SLE) || op == SYMBOLIC_NE ||
	       (op >= SYMBOLIC_UADD_OVER && op <= SYMBOLIC_SMUL_OVER);
}

static void agrees(const struct known *k)
{
	for (unsigned m = 0; m < MODELS; m++) {
		memcpy(expression_model, model[m], INPUTS);
		expression_model_changed();
		assert_int_equal(expression_value(k->e), k->value[m]);
	}
}

static struct known start(void)
{
	struct known k = { .width = 8 };
	uint64_t value = chance() % 2 ? chance() % 3 : chance();
	unsigned input = chance() % INPUTS;

	if (chance() % 3) {
		k.e = expression_input(input);
		for (unsigned m = 0; m < MODELS; m++)
			k.value[m] = model[m][input];
		return k;
	}
	k.width = 1u << chance() % 7;
	k.e = expression_constant(k.width, value);
	for (unsigned m = 0; m < MODELS; m++)
		k.value[m] = value & expression_mask(k.width);
	return k;
}

/* To the same width as another one, in one of several ways. */
static struct known fit(struct known k, unsigned width)
{
	enum symbolic_op op = chance() % 2 ? SYMBOLIC_ZEXT : SYMBOLIC_SEXT;
	unsigned low = k.width > width ? chance() % (k.width - width + 1) : 0;

	if (k.width < width) {
		k.e = expression_extend(op, k.e, width);
		for (unsigned m = 0; m < MODELS; m++)
			if (op == SYMBOLIC_SEXT)
				k.value[m] = (uint64_t)with_sign(k.value[m], k.width) &
					     expression_mask(width);
	} else {
		k.e = expression_extract(k.e, low, width);
		for (unsigned m = 0; m < MODELS; m++)
			k.value[m] = k.value[m] >> low & expression_mask(width);
	}
	k.width = width;
	return k;
}

static struct known combine(struct known a, struct known b, struct known c)
{
	enum symbolic_op op = SYMBOLIC_ADD + chance() % (SYMBOLIC_SSUB_SAT - SYMBOLIC_ADD + 1);
	struct known k = { .width = a.width };

	if (op == SYMBOLIC_IF) {
		c = fit(c, 1);
		b = fit(b, a.width);
		k.e = expression_if(c.e, a.e, b.e);
		for (unsigned m = 0; m < MODELS; m++)
			k.value[m] = c.value[m] ? a.value[m] : b.value[m];
		return k;
	}
	if (op == SYMBOLIC_CONCAT) {
		if (a.width + b.width > 64)
			return a;
		k.width = a.width + b.width;
		k.e = expression_make(op, 0, a.e, b.e);
		for (unsigned m = 0; m < MODELS; m++)
			k.value[m] = a.value[m] << b.width | b.value[m];
		return k;
	}
	if (op == SYMBOLIC_EXTRACT || op == SYMBOLIC_ZEXT || op == SYMBOLIC_SEXT ||
	    op == SYMBOLIC_TRUNC)
		return fit(a, 1 + chance() % 64);
	if (op == SYMBOLIC_BSWAP || op == SYMBOLIC_REVERSE) {
		unsigned piece = op == SYMBOLIC_BSWAP ? 8 : 1;

		if (a.width % piece)
			return a;
		k.e = expression_make(op, a.width, a.e, 0);
		for (unsigned m = 0; m < MODELS; m++)
			for (unsigned at = 0; at < a.width; at += piece)
				k.value[m] |= (a.value[m] >> at & expression_mask(piece))
					      << (a.width - piece - at);
		return k;
	}
	b = fit(b, a.width);
	k.e = expression_make(op, a.width, a.e, b.e);
	k.width = is_condition(op) ? 1 : a.width;
	for (unsigned m = 0; m < MODELS; m++)
		k.value[m] =
			reference(op, a.width, a.value[m], b.value[m]) & expression_mask(k.width);
	return k;
}

static void test_random_expressions(void **state)
{
	static struct known known[NODES];

	(void)state;
	assert_true(expression_start());
	for (int round = 0; round < ROUNDS; round++) {
		for (unsigned m = 0; m < MODELS; m++)
			for (unsigned i = 0; i < INPUTS; i++)
				model[m][i] = (uint8_t)(chance() % 2   ? chance()
							: chance() % 2 ? 0
								       : 255);
		for (unsigned n = 0; n < NODES; n++) {
			unsigned a = n ? chance() % n : 0, b = n ? chance() % n : 0;

			known[n] =
				n < 8 ? start() : combine(known[a], known[b], known[chance() % n]);
			assert_int_equal(expression_at(known[n].e)->width, known[n].width);
			agrees(&known[n]);
		}
	}
}

/* A path over one byte: each condition that may hold does so for some value, and for no other. */
static void test_paths_of_one_byte(void **state)
{
	static struct path_change change;

	(void)state;
	assert_true(expression_start());
	for (uint32_t number = 100; number < 400; number++) {
		uint32_t byte = expression_input(number), condition[6];
		unsigned count = 0;

		expression_model[number] = (uint8_t)chance();
		expression_model_changed();
		while (count < 6) {
			uint32_t x = expression_make(SYMBOLIC_MUL, 8, byte,
						     expression_constant(8, chance() % 5));
			uint32_t next =
				expression_make(chance() % 2 ? SYMBOLIC_ULT : SYMBOLIC_EQ, 8,
						expression_make(SYMBOLIC_ADD, 8, x,
								expression_constant(8, chance())),
						expression_constant(8, chance()));
			bool possible = false;
			enum path_answer answer;
			uint8_t before = expression_model[number];

			for (unsigned v = 0; v < 256; v++) {
				bool holds;

				expression_model[number] = (uint8_t)v;
				expression_model_changed();
				holds = expression_value(next);
				for (unsigned i = 0; i < count; i++)
					holds &= expression_value(condition[i]);
				possible |= holds;
			}
			expression_model[number] = before;
			expression_model_changed();
			answer = path_may(next, &change);
			assert_int_equal(answer, possible ? PATH_YES : PATH_NO);
			if (!possible)
				next = expression_not(next);
			else
				path_use(&change);
			assert_int_equal(expression_value(next), 1);
			path_assume(next);
			condition[count++] = next;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_expressions),
		cmocka_unit_test(test_paths_of_one_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
