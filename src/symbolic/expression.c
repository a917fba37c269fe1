/* SPDX-License-Identifier: BSD-3-Clause */
#include "symbolic/derived.h"

#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ROOM = 1 << 24, SLOTS = 1 << 10, DEPTH = 1 << 20 };

struct expression *expressions;
uint32_t expression_count;
uint8_t expression_model[EXPRESSION_INPUTS];

static uint32_t *slots; /* heads of chains, by hash */
static uint32_t slot_count;
static uint32_t model_now = 1;

static void *reserve(size_t size)
{
	long got = syscall(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0L);

	return got == -1 ? NULL : (void *)got;
}

bool expression_start(void)
{
	if (expressions)
		return true;
	slot_count = SLOTS;
	slots = reserve(slot_count * sizeof(*slots));
	expressions = reserve((size_t)ROOM * sizeof(*expressions));
	expression_count = 1; /* 0 is no expression */
	return slots && expressions;
}

/* ---- making them ---- */

static uint64_t mix(uint64_t a, uint64_t b)
{
	a = (a + 0x9e3779b97f4a7c15ull) * 0xbf58476d1ce4e5b9ull ^ b;
	a = (a ^ a >> 30) * 0x94d049bb133111ebull;
	return a ^ a >> 31;
}

static uint64_t hash_of(const struct expression *e)
{
	uint64_t hash = mix(mix(e->op + 1, e->width), e->constant);

	hash = mix(hash, e->a ? expressions[e->a].hash : 0);
	hash = mix(hash, e->b ? expressions[e->b].hash : 0);
	return mix(hash, e->c ? expressions[e->c].hash : 0);
}

/* Small at first: each process that is forked copies what it touches. */
static void grow(void)
{
	uint32_t *more = reserve(8ul * slot_count * sizeof(*more));

	if (!more)
		return;
	slots = more; /* the old one is small, and may be another process's as well */
	slot_count *= 8;
	for (uint32_t e = 1; e < expression_count; e++) {
		uint32_t *slot = &slots[expressions[e].hash % slot_count];

		expressions[e].next = *slot;
		*slot = e;
	}
}

static uint32_t together(uint32_t a, uint32_t b)
{
	return !a || a == b ? b : !b ? a : EXPRESSION_MANY;
}

static uint32_t add(struct expression e)
{
	uint32_t *slot, at;

	e.hash = hash_of(&e);
	if (expression_count > 4 * slot_count)
		grow();
	slot = &slots[e.hash % slot_count];
	for (at = *slot; at; at = expressions[at].next) {
		const struct expression *other = &expressions[at];

		if (other->op == e.op && other->width == e.width && other->a == e.a &&
		    other->b == e.b && other->c == e.c && other->constant == e.constant)
			return at;
	}
	if (expression_count == ROOM)
		return 0; /* no more: it becomes what it is under the model */
	if (e.op == SYMBOLIC_INPUT)
		e.only = (uint32_t)e.constant + 1;
	else if (e.op != SYMBOLIC_CONSTANT)
		e.only = together(together(expressions[e.a].only, expressions[e.b].only),
				  expressions[e.c].only);
	e.next = *slot;
	*slot = expression_count;
	expressions[expression_count] = e;
	return expression_count++;
}

uint32_t expression_constant(unsigned width, uint64_t value)
{
	return add((struct expression){ .op = SYMBOLIC_CONSTANT,
					.width = (uint8_t)width,
					.constant = value & expression_mask(width) });
}

uint32_t expression_input(uint32_t number)
{
	return add((struct expression){
		.op = SYMBOLIC_INPUT, .width = 8, .constant = number % EXPRESSION_INPUTS });
}

bool expression_is_constant(uint32_t e, uint64_t *value)
{
	if (expressions[e].op != SYMBOLIC_CONSTANT)
		return false;
	*value = expressions[e].constant;
	return true;
}

static bool is_constant(uint32_t e)
{
	return expressions[e].op == SYMBOLIC_CONSTANT;
}

static bool is(uint32_t e, uint64_t value)
{
	return is_constant(e) &&
	       expressions[e].constant == (value & expression_mask(expressions[e].width));
}

static uint32_t truth(bool value)
{
	return expression_constant(1, value);
}

/* ---- what operations give ---- */

static uint64_t divide(enum symbolic_op op, unsigned width, uint64_t a, uint64_t b)
{
	int64_t x = expression_signed(width, a), y = expression_signed(width, b);

	/* As solvers have it; the program would not get here. */
	if (!b)
		return op == SYMBOLIC_UDIV ? ~0ull : op == SYMBOLIC_SDIV ? (x < 0 ? 1 : ~0ull) : a;
	if (op == SYMBOLIC_UDIV)
		return a / b;
	if (op == SYMBOLIC_UREM)
		return a % b;
	if (y == -1)
		return op == SYMBOLIC_SDIV ? 0 - a : 0;
	return op == SYMBOLIC_SDIV ? (uint64_t)(x / y) : (uint64_t)(x % y);
}

static uint64_t shift(enum symbolic_op op, unsigned width, uint64_t a, uint64_t b)
{
	if (b >= width)
		return op == SYMBOLIC_ASHR && expression_signed(width, a) < 0 ? ~0ull : 0;
	if (op == SYMBOLIC_SHL)
		return a << b;
	return op == SYMBOLIC_LSHR ? a >> b : (uint64_t)(expression_signed(width, a) >> b);
}

static uint64_t compute(enum symbolic_op op, unsigned width, uint64_t a, uint64_t b)
{
	switch (op) {
	case SYMBOLIC_ADD:
		return a + b;
	case SYMBOLIC_SUB:
		return a - b;
	case SYMBOLIC_MUL:
		return a * b;
	case SYMBOLIC_UDIV:
	case SYMBOLIC_SDIV:
	case SYMBOLIC_UREM:
	case SYMBOLIC_SREM:
		return divide(op, width, a, b);
	case SYMBOLIC_SHL:
	case SYMBOLIC_LSHR:
	case SYMBOLIC_ASHR:
		return shift(op, width, a, b);
	case SYMBOLIC_AND:
		return a & b;
	case SYMBOLIC_OR:
		return a | b;
	case SYMBOLIC_XOR:
		return a ^ b;
	case SYMBOLIC_EQ:
		return a == b;
	case SYMBOLIC_ULT:
		return a < b;
	case SYMBOLIC_ULE:
		return a <= b;
	case SYMBOLIC_SLT:
		return expression_signed(width, a) < expression_signed(width, b);
	case SYMBOLIC_SLE:
		return expression_signed(width, a) <= expression_signed(width, b);
	default:
		return 0;
	}
}

static bool compares(enum symbolic_op op)
{
	return op >= SYMBOLIC_EQ && op <= SYMBOLIC_SLE;
}

uint64_t expression_compute(enum symbolic_op op, unsigned width, uint64_t a, uint64_t b)
{
	a &= expression_mask(width);
	b &= expression_mask(width);
	return compute(op, width, a, b) & expression_mask(compares(op) ? 1 : width);
}

uint64_t expression_apply(const struct expression *e, uint64_t a, uint64_t b, uint64_t c,
			  uint64_t input)
{
	switch (e->op) {
	case SYMBOLIC_CONSTANT:
		return e->constant;
	case SYMBOLIC_INPUT:
		return input;
	case SYMBOLIC_IF:
		return a ? b : c;
	case SYMBOLIC_EXTRACT:
		return a >> e->constant & expression_mask(e->width);
	case SYMBOLIC_ZEXT:
		return a;
	case SYMBOLIC_SEXT:
		return (uint64_t)expression_signed(expressions[e->a].width, a) &
		       expression_mask(e->width);
	case SYMBOLIC_CONCAT:
		return a << expressions[e->b].width | b;
	default:
		return expression_compute(e->op, expressions[e->a].width, a, b);
	}
}

/* Of its operands the values are known. */
static uint64_t evaluate(const struct expression *e)
{
	return expression_apply(e, expressions[e->a].value, expressions[e->b].value,
				expressions[e->c].value,
				e->op == SYMBOLIC_INPUT ? expression_model[e->constant] : 0);
}

static uint32_t stale(uint32_t e)
{
	return e && expressions[e].as_of != model_now ? e : 0;
}

/* Not by recursion: sums over long inputs are deep. */
uint64_t expression_value(uint32_t number)
{
	static uint32_t stack[DEPTH];
	struct expression *e = &expressions[number];
	uint32_t depth = 0, first;

	if (e->as_of == model_now)
		return e->value;
	stack[depth++] = number;
	while (depth) {
		e = &expressions[stack[depth - 1]];
		first = stale(e->a);
		first = first ? first : stale(e->b);
		first = first ? first : stale(e->c);
		if (first && depth < DEPTH) {
			stack[depth++] = first;
			continue;
		}
		e->value = evaluate(e);
		e->as_of = model_now;
		depth--;
	}
	return expressions[number].value;
}

void expression_model_changed(void)
{
	model_now++;
}

/* ---- simplifying ---- */

static uint32_t binary(enum symbolic_op op, unsigned width, uint32_t a, uint32_t b)
{
	return add((struct expression){
		.op = op, .width = compares(op) ? 1 : (uint8_t)width, .a = a, .b = b });
}

static bool commutes(enum symbolic_op op)
{
	return op == SYMBOLIC_ADD || op == SYMBOLIC_MUL || op == SYMBOLIC_AND ||
	       op == SYMBOLIC_OR || op == SYMBOLIC_XOR || op == SYMBOLIC_EQ;
}

uint32_t expression_not(uint32_t condition)
{
	return expression_make(SYMBOLIC_XOR, 1, condition, truth(true));
}

/* An operation with a constant on its right, whatever is on its left; 0: it stays. */
static uint32_t with_constant(enum symbolic_op op, unsigned width, uint32_t a, uint32_t b)
{
	const struct expression left = expressions[a];
	uint64_t k = expressions[b].constant, ones = expression_mask(width);

	switch (op) {
	case SYMBOLIC_ADD:
		if (!k)
			return a;
		if (left.op == SYMBOLIC_ADD && is_constant(left.b))
			return expression_make(
				SYMBOLIC_ADD, width, left.a,
				expression_constant(width, expressions[left.b].constant + k));
		break;
	case SYMBOLIC_MUL:
		if (k <= 1)
			return k ? a : b;
		break;
	case SYMBOLIC_UDIV:
	case SYMBOLIC_SDIV:
		if (k == 1)
			return a;
		if (op == SYMBOLIC_UDIV && k && !(k & (k - 1)))
			return expression_make(SYMBOLIC_LSHR, width, a,
					       expression_constant(width, __builtin_ctzll(k)));
		break;
	case SYMBOLIC_UREM:
		if (k && !(k & (k - 1)))
			return expression_make(SYMBOLIC_AND, width, a,
					       expression_constant(width, k - 1));
		break;
	case SYMBOLIC_SHL:
	case SYMBOLIC_LSHR:
	case SYMBOLIC_ASHR:
		if (!k)
			return a;
		if (op == SYMBOLIC_LSHR && k < width)
			return expression_extend(SYMBOLIC_ZEXT, expression_extract(a, k, width - k),
						 width);
		if (op == SYMBOLIC_SHL && k < width)
			return expression_make(SYMBOLIC_CONCAT, 0,
					       expression_extract(a, 0, width - k),
					       expression_constant(k, 0));
		break;
	case SYMBOLIC_AND:
		if (!k)
			return b;
		if (k == ones)
			return a;
		if (!(k & (k + 1))) /* the lowest bits */
			return expression_extend(SYMBOLIC_ZEXT,
						 expression_extract(a, 0, 64 - __builtin_clzll(k)),
						 width);
		break;
	case SYMBOLIC_OR:
		if (!k)
			return a;
		if (k == ones)
			return b;
		break;
	case SYMBOLIC_XOR:
		if (!k)
			return a;
		if (left.op == SYMBOLIC_XOR && is_constant(left.b))
			return expression_make(
				SYMBOLIC_XOR, width, left.a,
				expression_constant(width, expressions[left.b].constant ^ k));
		break;
	case SYMBOLIC_ULT:
		if (!k)
			return truth(false);
		if (k == 1)
			return expression_make(SYMBOLIC_EQ, width, a,
					       expression_constant(width, 0));
		break;
	case SYMBOLIC_ULE:
		if (k == ones)
			return truth(true);
		if (!k)
			return expression_make(SYMBOLIC_EQ, width, a, b);
		break;
	default:
		break;
	}
	return 0;
}

/* Comparisons of what is wider than it need be, or made of parts. */
static uint32_t compare_with_constant(enum symbolic_op op, unsigned width, uint32_t a, uint32_t b)
{
	const struct expression left = expressions[a];
	uint64_t k = expressions[b].constant;
	unsigned inner = left.a ? expressions[left.a].width : 0;

	if (left.op == SYMBOLIC_IF && (is_constant(left.b) || is_constant(left.c)))
		return expression_if(left.a, expression_make(op, width, left.b, b),
				     expression_make(op, width, left.c, b));
	if (op == SYMBOLIC_EQ && width == 1)
		return k ? a : expression_not(a);
	if (left.op == SYMBOLIC_ZEXT) {
		uint64_t most = expression_mask(inner);
		uint32_t low = expression_constant(inner, k);

		if (op == SYMBOLIC_EQ)
			return k > most ? truth(false)
					: expression_make(SYMBOLIC_EQ, inner, left.a, low);
		if (op == SYMBOLIC_ULT || op == SYMBOLIC_ULE)
			return k > most ? truth(true) : expression_make(op, inner, left.a, low);
		/* It is not negative, so signed and unsigned are the same. */
		if (expression_signed(width, k) < 0)
			return truth(false);
		return expression_make(op == SYMBOLIC_SLT ? SYMBOLIC_ULT : SYMBOLIC_ULE, width, a,
				       b);
	}
	if (left.op == SYMBOLIC_SEXT && op != SYMBOLIC_ULT && op != SYMBOLIC_ULE) {
		uint64_t back = (uint64_t)expression_signed(inner, k) & expression_mask(width);

		if (back == k)
			return expression_make(op, inner, left.a, expression_constant(inner, k));
		if (op == SYMBOLIC_EQ)
			return truth(false);
		return truth(expression_signed(width, k) >= 0);
	}
	if (op != SYMBOLIC_EQ)
		return 0;
	if (left.op == SYMBOLIC_CONCAT) {
		unsigned low = expressions[left.b].width;

		return expression_make(
			SYMBOLIC_AND, 1,
			expression_make(SYMBOLIC_EQ, width - low, left.a,
					expression_constant(width - low, k >> low)),
			expression_make(SYMBOLIC_EQ, low, left.b, expression_constant(low, k)));
	}
	if ((left.op == SYMBOLIC_ADD || left.op == SYMBOLIC_XOR) && is_constant(left.b)) {
		uint64_t other = expressions[left.b].constant;

		return expression_make(SYMBOLIC_EQ, width, left.a,
				       expression_constant(width, left.op == SYMBOLIC_ADD
									  ? k - other
									  : k ^ other));
	}
	return 0;
}

static uint32_t with_itself(enum symbolic_op op, unsigned width, uint32_t a)
{
	switch (op) {
	case SYMBOLIC_SUB:
	case SYMBOLIC_XOR:
		return expression_constant(width, 0);
	case SYMBOLIC_AND:
	case SYMBOLIC_OR:
		return a;
	case SYMBOLIC_EQ:
	case SYMBOLIC_ULE:
	case SYMBOLIC_SLE:
		return truth(true);
	case SYMBOLIC_ULT:
	case SYMBOLIC_SLT:
		return truth(false);
	default:
		return 0;
	}
}

static uint32_t concat(uint32_t a, uint32_t b)
{
	const struct expression high = expressions[a], low = expressions[b];
	unsigned width = high.width + low.width;

	if (high.op == SYMBOLIC_CONSTANT && low.op == SYMBOLIC_CONSTANT)
		return expression_constant(width, high.constant << low.width | low.constant);
	if (is(a, 0))
		return expression_extend(SYMBOLIC_ZEXT, b, width);
	if (high.op == SYMBOLIC_EXTRACT && low.op == SYMBOLIC_EXTRACT && high.a == low.a &&
	    high.constant == low.constant + low.width)
		return expression_extract(high.a, low.constant, width);
	/* (x . y) . z: the parts that belong together may be the last two. */
	if (high.op == SYMBOLIC_CONCAT && expressions[high.b].op == SYMBOLIC_EXTRACT &&
	    low.op == SYMBOLIC_EXTRACT && expressions[high.b].a == low.a &&
	    expressions[high.b].constant == low.constant + low.width)
		return concat(high.a, concat(high.b, b));
	return add((struct expression){
		.op = SYMBOLIC_CONCAT, .width = (uint8_t)width, .a = a, .b = b });
}

/* The operations of abi.h that are kept as they are. */
static uint32_t basic(enum symbolic_op op, unsigned width, uint32_t a, uint32_t b)
{
	uint32_t result = 0;

	if (is_constant(a) && is_constant(b))
		return expression_constant(compares(op) ? 1 : width,
					   expression_compute(op, width, expressions[a].constant,
							      expressions[b].constant));
	if (op == SYMBOLIC_SUB && is_constant(b))
		return basic(SYMBOLIC_ADD, width, a,
			     expression_constant(width, 0 - expressions[b].constant));
	if (commutes(op) && (is_constant(a) || (!is_constant(b) && a > b))) {
		uint32_t other = a;

		a = b;
		b = other;
	}
	if (a == b)
		result = with_itself(op, width, a);
	if (!result && is_constant(b))
		result = with_constant(op, width, a, b);
	if (!result && is_constant(b) && compares(op))
		result = compare_with_constant(op, width, a, b);
	/* k < x is !(x <= k): then constants are always on the right. */
	if (!result && is_constant(a) && compares(op) && op != SYMBOLIC_EQ) {
		static const uint8_t other[] = { [SYMBOLIC_ULT] = SYMBOLIC_ULE,
						 [SYMBOLIC_ULE] = SYMBOLIC_ULT,
						 [SYMBOLIC_SLT] = SYMBOLIC_SLE,
						 [SYMBOLIC_SLE] = SYMBOLIC_SLT };

		result = expression_not(basic(other[op], width, b, a));
	}
	if (!result && op == SYMBOLIC_EQ && expressions[a].op == SYMBOLIC_ZEXT &&
	    expressions[b].op == SYMBOLIC_ZEXT &&
	    expressions[expressions[a].a].width == expressions[expressions[b].a].width)
		result = basic(SYMBOLIC_EQ, expressions[expressions[a].a].width, expressions[a].a,
			       expressions[b].a);
	return result ? result : binary(op, width, a, b);
}

uint32_t expression_if(uint32_t condition, uint32_t then, uint32_t otherwise)
{
	const struct expression *c = &expressions[condition];

	if (c->op == SYMBOLIC_CONSTANT)
		return c->constant ? then : otherwise;
	if (then == otherwise)
		return then;
	if (c->op == SYMBOLIC_XOR && is(c->b, 1))
		return expression_if(c->a, otherwise, then);
	if (expressions[then].width == 1 && is_constant(then))
		return is(then, 1) ? expression_make(SYMBOLIC_OR, 1, condition, otherwise)
				   : expression_make(SYMBOLIC_AND, 1, expression_not(condition),
						     otherwise);
	if (expressions[then].width == 1 && is_constant(otherwise))
		return is(otherwise, 0)
			       ? expression_make(SYMBOLIC_AND, 1, condition, then)
			       : expression_make(SYMBOLIC_OR, 1, expression_not(condition), then);
	return add((struct expression){ .op = SYMBOLIC_IF,
					.width = expressions[then].width,
					.a = condition,
					.b = then,
					.c = otherwise });
}

/* Taking a part of it does not go any deeper, which could take for ever where parts are shared. */
static bool is_shallow(uint32_t e)
{
	unsigned op = expressions[e].op;

	return op == SYMBOLIC_CONSTANT || op == SYMBOLIC_INPUT || op >= SYMBOLIC_EXTRACT ||
	       op == SYMBOLIC_CONCAT;
}

static bool is_bitwise(unsigned op)
{
	return op == SYMBOLIC_AND || op == SYMBOLIC_OR || op == SYMBOLIC_XOR;
}

uint32_t expression_extract(uint32_t a, unsigned low, unsigned width)
{
	const struct expression e = expressions[a];
	unsigned part;

	if (!low && width == e.width)
		return a;
	switch (e.op) {
	case SYMBOLIC_CONSTANT:
		return expression_constant(width, e.constant >> low);
	case SYMBOLIC_EXTRACT:
		return expression_extract(e.a, low + e.constant, width);
	case SYMBOLIC_CONCAT:
		part = expressions[e.b].width;
		if (low >= part)
			return expression_extract(e.a, low - part, width);
		if (low + width <= part)
			return expression_extract(e.b, low, width);
		return concat(expression_extract(e.a, 0, low + width - part),
			      expression_extract(e.b, low, part - low));
	case SYMBOLIC_ZEXT:
		part = expressions[e.a].width;
		if (low >= part)
			return expression_constant(width, 0);
		if (low + width <= part)
			return expression_extract(e.a, low, width);
		return expression_extend(SYMBOLIC_ZEXT, expression_extract(e.a, low, part - low),
					 width);
	case SYMBOLIC_SEXT:
		part = expressions[e.a].width;
		if (low + width <= part)
			return expression_extract(e.a, low, width);
		if (!low)
			return expression_extend(SYMBOLIC_SEXT, e.a, width);
		break;
	case SYMBOLIC_IF:
		if (is_constant(e.b) || is_constant(e.c))
			return expression_if(e.a, expression_extract(e.b, low, width),
					     expression_extract(e.c, low, width));
		break;
	case SYMBOLIC_ADD:
	case SYMBOLIC_SUB:
	case SYMBOLIC_MUL:
		if (!low && is_shallow(e.a) && is_shallow(e.b)) /* what is above does not matter */
			return expression_make(e.op, width, expression_extract(e.a, 0, width),
					       expression_extract(e.b, 0, width));
		break;
	default:
		if (is_bitwise(e.op) && is_shallow(e.a) && is_shallow(e.b))
			return expression_make(e.op, width, expression_extract(e.a, low, width),
					       expression_extract(e.b, low, width));
	}
	return add((struct expression){
		.op = SYMBOLIC_EXTRACT, .width = (uint8_t)width, .a = a, .constant = low });
}

uint32_t expression_extend(enum symbolic_op op, uint32_t a, unsigned width)
{
	const struct expression e = expressions[a];

	if (width == e.width)
		return a;
	if (e.op == SYMBOLIC_CONSTANT)
		return expression_constant(
			width, op == SYMBOLIC_ZEXT
				       ? e.constant
				       : (uint64_t)expression_signed(e.width, e.constant));
	if (e.op == SYMBOLIC_ZEXT || e.op == op)
		return expression_extend(e.op, e.a, width);
	return add((struct expression){ .op = op, .width = (uint8_t)width, .a = a });
}

uint32_t expression_make(enum symbolic_op op, unsigned width, uint32_t a, uint32_t b)
{
	if (op == SYMBOLIC_CONCAT)
		return concat(a, b);
	return op < SYMBOLIC_OPS ? basic(op, width, a, b) : derived_make(op, width, a, b);
}
