/* SPDX-License-Identifier: BSD-3-Clause */
#include "symbolic/path.h"

#include <stddef.h>
#include <stdlib.h>

enum { CONSTRAINTS = 1 << 16, LISTED = 4096, KNOWN = 64 };

path_solver *path_ask_solver;

static uint32_t constraint[CONSTRAINTS], constraints;

/* Inputs in the same group have a constraint in common, directly or by others. */
static struct input {
	uint32_t parent; /* itself if 0 */
	bool tied;       /* of the group's first: some constraint is about two or more */
	uint64_t excluded[4];
} input[EXPRESSION_INPUTS];

static uint32_t group_of(uint32_t i)
{
	while (input[i].parent)
		i = input[i].parent - 1;
	return i;
}

/* ---- the inputs of an expression ---- */

static uint32_t mark_now;

typedef void input_function(uint32_t number, void *context);

static void each_input(uint32_t e, input_function *function, void *context)
{
	static uint32_t stack[1 << 16];
	uint32_t depth = 0;

	mark_now++;
	stack[depth++] = e;
	while (depth) {
		struct expression *at = &expressions[stack[--depth]];

		if (at->mark == mark_now || !at->only)
			continue;
		at->mark = mark_now;
		if (at->op == SYMBOLIC_INPUT)
			function((uint32_t)at->constant, context);
		if (depth + 3 > sizeof(stack) / sizeof(*stack))
			continue;
		if (at->a)
			stack[depth++] = at->a;
		if (at->b)
			stack[depth++] = at->b;
		if (at->c)
			stack[depth++] = at->c;
	}
}

static void join(uint32_t number, void *context)
{
	uint32_t *first = context, group = group_of(number);

	if (*first == EXPRESSION_MANY) {
		*first = group;
	} else if (group != *first) {
		input[group].parent = *first + 1;
		input[*first].tied |= input[group].tied;
	}
}

/* ---- one byte: all its values ---- */

struct truth {
	uint64_t bits[4];
};

static bool get(const uint64_t bits[4], unsigned value)
{
	return bits[value / 64] >> value % 64 & 1;
}

/*
 * An expression with one input as a list, operands first. Its memory stays small: each process
 * that was forked has to make its own copy of what it writes to.
 */
struct listed {
	unsigned count;
	struct {
		uint32_t e;
		uint16_t a, b, c;
	} item[LISTED];
	uint64_t value[LISTED];
};

/* Where it is in the list; -1 if there is no room. */
static int enlist(struct listed *list, uint32_t e, unsigned depth)
{
	const struct expression *x = &expressions[e];
	int a = 0, b = 0, c = 0;

	for (unsigned i = list->count; i-- > 0;)
		if (list->item[i].e == e)
			return (int)i;
	if (depth == LISTED)
		return -1;
	if ((x->a && (a = enlist(list, x->a, depth + 1)) < 0) ||
	    (x->b && (b = enlist(list, x->b, depth + 1)) < 0) ||
	    (x->c && (c = enlist(list, x->c, depth + 1)) < 0) || list->count == LISTED)
		return -1;
	list->item[list->count].e = e;
	list->item[list->count].a = (uint16_t)a;
	list->item[list->count].b = (uint16_t)b;
	list->item[list->count].c = (uint16_t)c;
	return (int)list->count++;
}

/* What the last one is if the input has this value. */
static uint64_t compute_all(struct listed *list, unsigned input_value)
{
	for (unsigned i = 0; i < list->count; i++)
		list->value[i] = expression_apply(
			&expressions[list->item[i].e], list->value[list->item[i].a],
			list->value[list->item[i].b], list->value[list->item[i].c], input_value);
	return list->value[list->count - 1];
}

static struct listed listed;

/* For which values of its only input it is true. False if it is too large. */
static bool truth_of(uint32_t condition, struct truth *truth)
{
	static struct {
		uint32_t condition;
		struct truth truth;
	} known[KNOWN];
	unsigned at = condition % KNOWN;

	if (known[at].condition == condition) {
		*truth = known[at].truth;
		return true;
	}
	listed.count = 0;
	if (enlist(&listed, condition, 0) < 0)
		return false;
	*truth = (struct truth){ { 0 } };
	for (unsigned v = 0; v < 256; v++)
		truth->bits[v / 64] |= (compute_all(&listed, v) & 1) << v % 64;
	known[at].condition = condition;
	known[at].truth = *truth;
	return true;
}

/* ---- questions ---- */

struct groups {
	uint32_t count, list[256];
	bool lost;
};

static bool has_group(const struct groups *groups, uint32_t group)
{
	for (uint32_t i = 0; i < groups->count; i++)
		if (groups->list[i] == group)
			return true;
	return groups->lost;
}

static void add_group(uint32_t number, void *context)
{
	struct groups *groups = context;
	uint32_t group = group_of(number);

	if (has_group(groups, group))
		return;
	if (groups->count == sizeof(groups->list) / sizeof(*groups->list))
		groups->lost = true; /* all of them, then */
	else
		groups->list[groups->count++] = group;
}

static uint32_t some_input(uint32_t e)
{
	while (expressions[e].op != SYMBOLIC_INPUT) {
		const struct expression *x = &expressions[e];

		e = expressions[x->a].only ? x->a : x->b && expressions[x->b].only ? x->b : x->c;
	}
	return (uint32_t)expressions[e].constant;
}

static enum path_answer ask(uint32_t condition, struct path_change *change)
{
	static uint32_t list[CONSTRAINTS + 1];
	struct groups groups = { 0 };
	struct path_question question = { .condition = list };

	each_input(condition, add_group, &groups);
	for (uint32_t i = 0; i < constraints; i++)
		if (has_group(&groups, group_of(some_input(constraint[i])))) {
			list[question.count++] = constraint[i];
			question.key += expressions[constraint[i]].hash * 0x9e3779b97f4a7c15ull;
		}
	list[question.count++] = condition;
	question.key += expressions[condition].hash * 0x9e3779b97f4a7c15ull;
	change->count = 0;
	return path_ask_solver ? path_ask_solver(&question, change) : PATH_UNKNOWN;
}

/* Does everything that the group of this input is about hold under the model? */
static bool group_agrees(uint32_t group, uint32_t condition)
{
	if (!expression_value(condition))
		return false;
	for (uint32_t i = 0; i < constraints; i++)
		if (group_of(some_input(constraint[i])) == group &&
		    !expression_value(constraint[i]))
			return false;
	return true;
}

/* Tries some values of the byte, while everything else stays as it is. */
static bool try_values(uint32_t number, const uint64_t possible[4], uint32_t condition,
		       struct path_change *change)
{
	enum { TRIES = 8 };
	uint8_t before = expression_model[number];
	uint32_t group = group_of(number);
	bool found = false;

	for (unsigned v = 0, tries = 0; v < 256 && tries < TRIES && !found; v++) {
		if (!get(possible, v))
			continue;
		tries++;
		expression_model[number] = (uint8_t)v;
		expression_model_changed();
		found = group_agrees(group, condition);
		change->count = 1;
		change->to[0].input = number;
		change->to[0].value = (uint8_t)v;
	}
	expression_model[number] = before;
	expression_model_changed();
	return found;
}

enum path_answer path_may(uint32_t condition, struct path_change *change)
{
	uint32_t only = expressions[condition].only, number = only - 1;
	struct truth truth;
	uint64_t constant;
	bool any = false;

	change->count = 0;
	if (expression_is_constant(condition, &constant))
		return constant ? PATH_YES : PATH_NO;
	if (expression_value(condition))
		return PATH_YES;
	if (only == EXPRESSION_MANY || !truth_of(condition, &truth))
		return ask(condition, change);
	for (unsigned i = 0; i < 4; i++) {
		truth.bits[i] &= ~input[number].excluded[i];
		any |= truth.bits[i] != 0;
	}
	if (!any)
		return PATH_NO;
	if (input[group_of(number)].tied)
		return try_values(number, truth.bits, condition, change) ? PATH_YES
									 : ask(condition, change);
	change->count = 1;
	change->to[0].input = number;
	for (unsigned v = 0; v < 256; v++)
		if (get(truth.bits, v)) {
			change->to[0].value = (uint8_t)v;
			break;
		}
	return PATH_YES;
}

void path_use(const struct path_change *change)
{
	for (uint32_t i = 0; i < change->count; i++)
		expression_model[change->to[i].input] = change->to[i].value;
	expression_model_changed();
}

void path_assume(uint32_t condition)
{
	const struct expression *e = &expressions[condition];
	uint32_t group = EXPRESSION_MANY;
	struct truth truth;

	if (!e->only)
		return;
	if (e->op == SYMBOLIC_AND && e->width == 1) {
		uint32_t a = e->a, b = e->b;

		path_assume(a);
		path_assume(b);
		return;
	}
	for (uint32_t i = constraints; i-- > 0 && constraints - i < 64;)
		if (constraint[i] == condition)
			return;
	if (constraints < CONSTRAINTS)
		constraint[constraints++] = condition;
	each_input(condition, join, &group);
	if (e->only == EXPRESSION_MANY || !truth_of(condition, &truth))
		input[group].tied = true;
	else
		for (unsigned i = 0; i < 4; i++)
			input[e->only - 1].excluded[i] |= ~truth.bits[i];
}

/* ---- values ---- */

static int values_of_one(uint32_t e, uint64_t *values, unsigned most)
{
	uint32_t number = expressions[e].only - 1;
	unsigned count = 0;

	listed.count = 0;
	if (enlist(&listed, e, 0) < 0)
		return -2;
	for (unsigned v = 0; v < 256; v++) {
		uint64_t value;
		unsigned i;

		if (get(input[number].excluded, v))
			continue;
		value = compute_all(&listed, v);
		for (i = 0; i < count && values[i] != value; i++)
			;
		if (i < count)
			continue;
		if (count == most)
			return -1;
		values[count++] = value;
	}
	return (int)count;
}

int path_values(uint32_t e, uint64_t *values, unsigned most)
{
	static struct path_change change;
	uint32_t only = expressions[e].only, other = expression_constant(1, 1);
	unsigned width = expressions[e].width, count = 0;
	uint64_t value = expression_value(e);
	int simple;

	if (only && only != EXPRESSION_MANY && !input[group_of(only - 1)].tied) {
		simple = values_of_one(e, values, most);
		if (simple > -2)
			return simple;
	}
	while (count < most) {
		enum path_answer answer;
		uint32_t is;

		values[count++] = value;
		is = expression_make(SYMBOLIC_EQ, width, e, expression_constant(width, value));
		other = expression_make(SYMBOLIC_AND, 1, other, expression_not(is));
		answer = path_may(other, &change);
		if (answer == PATH_NO)
			return (int)count;
		if (answer == PATH_UNKNOWN)
			return -1;
		/* What it would be then. */
		for (uint32_t i = 0; i < change.count; i++) {
			uint8_t before = expression_model[change.to[i].input];

			expression_model[change.to[i].input] = change.to[i].value;
			change.to[i].value = before;
		}
		expression_model_changed();
		value = expression_value(e);
		path_use(&change);
	}
	return -1;
}
