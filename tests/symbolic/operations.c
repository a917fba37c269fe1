/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every operation of C on integers, on symbolic operands, against the processor: computed while the
 * operands may be anything, then these are assumed to be some numbers, and the result must be what
 * the processor makes of those. There is one path, and nothing is found. With -DWRONG each expected
 * result is wrong by one bit, and each operation is found.
 */
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <perdure/perdure.h>

#include "../programs/pm.h"

#ifdef WRONG
#define EXPECTED(x) ((x) ^ 1)
#else
#define EXPECTED(x) (x)
#endif

enum { ROUNDS = 6, BYTES = 12288 };

static uint8_t symbolic[BYTES];
static unsigned used;

/* Numbers that are often special. */
static uint64_t operand(void)
{
	static const uint64_t special[] = { 0,          1,          2,         0x7f,
					    0x80,       0xff,       0x7fff,    0x8000,
					    0x7fffffff, UINT32_MAX, INT64_MAX, UINT64_MAX };
	static uint64_t state = 88172645463325252ull;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % 3 ? state >> state % 64 : special[state / 3 % 12];
}

static void *fresh(unsigned size)
{
	void *bytes = symbolic + used;

	used += size;
	if (used > BYTES)
		abort();
	return bytes;
}

/* Of two operands; `valid` keeps what C leaves open out. */
#define BINARY(name, type, result, expression, valid)                                              \
	static result name##_##type(type a, type b)                                                \
	{                                                                                          \
		return (result)(expression);                                                       \
	}                                                                                          \
	static void test_##name##_##type(void)                                                     \
	{                                                                                          \
		for (int round = 0; round < ROUNDS; round++) {                                     \
			volatile type x = (type)operand(), y = (type)operand();                    \
			type a = x, b = y, s, t;                                                   \
			result r;                                                                  \
                                                                                                   \
			if (!(valid))                                                              \
				continue;                                                          \
			memcpy(&s, fresh(sizeof(s)), sizeof(s));                                   \
			memcpy(&t, fresh(sizeof(t)), sizeof(t));                                   \
			perdure_assume((a = s, b = t, valid));                                     \
			r = name##_##type(s, t);                                                   \
			perdure_assume(s == x);                                                    \
			perdure_assume(t == y);                                                    \
			if (r != (result)EXPECTED(name##_##type(x, y)))                            \
				perdure_found(#name "_" #type);                                    \
		}                                                                                  \
	}

#define ALL_ONES(type) ((type)(0 - 1))

#define ARITHMETIC(type)                                                                           \
	BINARY(add, type, type, a + b, 1)                                                          \
	BINARY(sub, type, type, a - b, 1)                                                          \
	BINARY(mul, type, type, a *b, 1)                                                           \
	BINARY(div, type, type, a / b, b != 0 && b != ALL_ONES(type))                              \
	BINARY(rem, type, type, a % b, b != 0 && b != ALL_ONES(type))                              \
	BINARY(and, type, type, a &b, 1)                                                           \
	BINARY(or, type, type, a | b, 1)                                                           \
	BINARY(xor, type, type, a ^ b, 1)                                                          \
	BINARY(shl, type, type, a << (b & 7), 1)                                                   \
	BINARY(shr, type, type, a >> (b & 7), 1)                                                   \
	BINARY(less, type, int, a < b, 1)                                                          \
	BINARY(less_equal, type, int, a <= b, 1)                                                   \
	BINARY(greater, type, int, a > b, 1)                                                       \
	BINARY(equal, type, int, a == b, 1)                                                        \
	BINARY(unequal, type, int, a != b, 1)                                                      \
	BINARY(least, type, type, a < b ? a : b, 1)                                                \
	BINARY(negated, type, type, -a ^ ~b, 1)                                                    \
	BINARY(logic, type, int, (a && b) + 2 * (a || b) + 4 * !a, 1)                              \
	BINARY(widened, type, int64_t, (int64_t)a * 3 - b, sizeof(type) < 8)                       \
	BINARY(narrowed, type, int8_t, (int8_t)a + (int8_t)(b >> 4), 1)

ARITHMETIC(uint8_t)
ARITHMETIC(int8_t)
ARITHMETIC(uint16_t)
ARITHMETIC(int16_t)
ARITHMETIC(uint32_t)
ARITHMETIC(int32_t)
ARITHMETIC(uint64_t)
ARITHMETIC(int64_t)

#define BITS(type, suffix)                                                                         \
	BINARY(population, type, int, __builtin_popcount##suffix(a ^ b), 1)                        \
	BINARY(leading, type, int, __builtin_clz##suffix(a | 1), 1)                                \
	BINARY(trailing, type, int, __builtin_ctz##suffix(b | (type)1 << 9), 1)                    \
	BINARY(rotated, type, type, (a << 5 | a >> (sizeof(a) * 8 - 5)) + b, 1)                    \
	BINARY(add_over, type, type, (__builtin_add_overflow(a, b, &a) ? 1 : 0) ^ a, 1)            \
	BINARY(sub_over, type, type, (__builtin_sub_overflow(a, b, &a) ? 1 : 0) ^ a, 1)            \
	BINARY(mul_over, type, type, (__builtin_mul_overflow(a, b, &a) ? 1 : 0) ^ a, 1)

BITS(uint32_t, )
BITS(uint64_t, ll)
BINARY(swapped, uint32_t, uint32_t, __builtin_bswap32(a) + b, 1)
BINARY(swapped, uint64_t, uint64_t, __builtin_bswap64(a) - b, 1)
BINARY(swapped, uint16_t, uint16_t, __builtin_bswap16(a) ^ b, 1)
BINARY(add_over, int32_t, int32_t, (__builtin_add_overflow(a, b, &a) ? 1 : 0) ^ a, 1)
BINARY(sub_over, int64_t, int64_t, (__builtin_sub_overflow(a, b, &a) ? 1 : 0) ^ a, 1)
BINARY(absolute, int32_t, int32_t, abs(a) - abs(b), a != INT32_MIN && b != INT32_MIN)
BINARY(truth, int64_t, int, (_Bool)a + (_Bool)b, 1)

/* ---- what is not one instruction ---- */

struct packed {
	unsigned low : 3, middle : 7;
	int high : 9;
};

static uint32_t through_bit_fields(uint32_t a, uint32_t b)
{
	struct packed p = { .low = a & 7, .middle = b & 127, .high = 0 };

	p.high = (int)(a >> 9) % 200;
	return p.low + p.middle * 8u + (uint32_t)p.high;
}

static uint32_t through_union(uint32_t a, uint32_t b)
{
	union {
		uint32_t word;
		uint8_t byte[4];
		uint16_t half[2];
	} u = { .word = a };

	u.byte[2] = (uint8_t)b;
	u.half[0] ^= (uint16_t)(b >> 16);
	return u.word;
}

static uint32_t through_table(uint32_t a, uint32_t b)
{
	static const uint16_t table[16] = { 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3 };

	return table[a & 15] * 31u + table[b >> 28];
}

static uint32_t through_array(uint32_t a, uint32_t b)
{
	uint32_t cell[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };

	cell[a & 7] = b;
	cell[b & 7] += 100;
	return cell[3] ^ cell[(a + 1) & 7];
}

struct pair {
	uint64_t first;
	uint32_t second;
};

static __attribute__((noinline)) struct pair swap_pair(struct pair p)
{
	return (struct pair){ p.second, (uint32_t)p.first };
}

static uint32_t through_structs(uint32_t a, uint32_t b)
{
	struct pair p = swap_pair((struct pair){ a, b });

	return (uint32_t)p.first * 3 + p.second;
}

static __attribute__((noinline)) uint32_t sum(int count, ...)
{
	uint32_t result = 0;
	va_list list;

	va_start(list, count);
	for (int i = 0; i < count; i++)
		result = result * 7 + va_arg(list, uint32_t);
	va_end(list);
	return result;
}

static uint32_t through_varargs(uint32_t a, uint32_t b)
{
	return sum(8, a, b, 1u, a, 2u, b, a, b);
}

static __attribute__((noinline)) uint32_t more(uint32_t a)
{
	return a + 17;
}

static __attribute__((noinline)) uint32_t less(uint32_t a)
{
	return a - 17;
}

static uint32_t through_pointers(uint32_t a, uint32_t b)
{
	uint32_t (*volatile function)(uint32_t) = more;

	return function(a) ^ (b & 1 ? more(b) : less(b));
}

static uint32_t through_copies(uint32_t a, uint32_t b)
{
	uint8_t from[16], to[24] = { 0 };
	uint32_t result;

	memset(from, 0x5a, sizeof(from));
	memcpy(from + 1, &a, sizeof(a));
	memcpy(from + 7, &b, sizeof(b));
	memmove(to + 3, from, sizeof(from));
	memmove(to + 5, to + 3, 12);
	memcpy(&result, to + 6, sizeof(result));
	return result + to[15];
}

static uint32_t through_heap(uint32_t a, uint32_t b)
{
	uint32_t *p = malloc(8), *q, result;

	p[0] = a;
	p[1] = b;
	q = realloc(p, 4096);
	result = q[0] - q[1];
	free(q);
	return result;
}

static uint32_t through_compare(uint32_t a, uint32_t b)
{
	char x[5], y[5];

	memcpy(x, &a, 4);
	memcpy(y, &b, 4);
	x[4] = y[4] = 0;
	return (memcmp(x, y, 4) < 0) + 2 * (strncmp(x, y, 2) == 0) + 4 * (strcmp(x, y) > 0) +
	       8 * (memcmp(x, "\0\0\0", 3) == 0);
}

/* What goes through floating point is fixed: there is nothing left to assume then. */
static void test_float(void)
{
	volatile uint32_t x = 123456;
	uint32_t s;

	memcpy(&s, fresh(sizeof(s)), sizeof(s));
	perdure_assume(s == x);
	if ((uint32_t)((double)s * 0.5) != EXPECTED((uint32_t)((double)x * 0.5)))
		perdure_found("float");
}

#define THROUGH(name) BINARY(name, uint32_t, uint32_t, through_##name(a, b), 1)

THROUGH(bit_fields)
THROUGH(union)
THROUGH(table)
THROUGH(array)
THROUGH(structs)
THROUGH(varargs)
THROUGH(pointers)
THROUGH(copies)
THROUGH(heap)
THROUGH(compare)

#define ALL(type)                                                                                  \
	test_add_##type();                                                                         \
	test_sub_##type();                                                                         \
	test_mul_##type();                                                                         \
	test_div_##type();                                                                         \
	test_rem_##type();                                                                         \
	test_and_##type();                                                                         \
	test_or_##type();                                                                          \
	test_xor_##type();                                                                         \
	test_shl_##type();                                                                         \
	test_shr_##type();                                                                         \
	test_less_##type();                                                                        \
	test_less_equal_##type();                                                                  \
	test_greater_##type();                                                                     \
	test_equal_##type();                                                                       \
	test_unequal_##type();                                                                     \
	test_least_##type();                                                                       \
	test_negated_##type();                                                                     \
	test_logic_##type();                                                                       \
	test_widened_##type();                                                                     \
	test_narrowed_##type()

int main(int argc, char **argv)
{
	uint64_t *pm = pm_map(argv); /* there must be some */

	(void)argc;
	*pm = 1;
	PERSIST(pm);
	perdure_symbolic(symbolic, sizeof(symbolic), "operands");
	ALL(uint8_t);
	ALL(int8_t);
	ALL(uint16_t);
	ALL(int16_t);
	ALL(uint32_t);
	ALL(int32_t);
	ALL(uint64_t);
	ALL(int64_t);
	test_population_uint32_t();
	test_leading_uint32_t();
	test_trailing_uint32_t();
	test_rotated_uint32_t();
	test_add_over_uint32_t();
	test_sub_over_uint32_t();
	test_mul_over_uint32_t();
	test_population_uint64_t();
	test_leading_uint64_t();
	test_trailing_uint64_t();
	test_rotated_uint64_t();
	test_add_over_uint64_t();
	test_sub_over_uint64_t();
	test_mul_over_uint64_t();
	test_swapped_uint16_t();
	test_swapped_uint32_t();
	test_swapped_uint64_t();
	test_add_over_int32_t();
	test_sub_over_int64_t();
	test_absolute_int32_t();
	test_truth_int64_t();
	test_bit_fields_uint32_t();
	test_union_uint32_t();
	test_table_uint32_t();
	test_array_uint32_t();
	test_structs_uint32_t();
	test_varargs_uint32_t();
	test_pointers_uint32_t();
	test_copies_uint32_t();
	test_heap_uint32_t();
	test_compare_uint32_t();
	test_float();
	return 0;
}
