/* SPDX-License-Identifier: BSD-3-Clause */
/* Library models: what the parser makes of them, and what it says about wrong ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "library/parse.h"

static struct library_table *table;
static char error[512];

static int parse(const char *text)
{
	library_table_init(table);
	error[0] = 0;
	return library_parse_text(table, "m", text, error, sizeof(error));
}

static const struct library_function *function(const char *name)
{
	for (uint32_t i = 0; i < table->functions; i++)
		if (strcmp(library_text(table, table->function[i].name), name) == 0)
			return &table->function[i];
	fail_msg("no function %s", name);
	return NULL;
}

static const struct library_effect *effect(const char *name, unsigned index)
{
	const struct library_function *f = function(name);

	assert_in_range(index, 0, f->effects - 1);
	return &table->effect[f->effect + index];
}

static void reads_effects(void **state)
{
	(void)state;
	assert_int_equal(parse("library libx.so* anywhere trusted # a comment\n"
			       "constant BIT 0x4\n"
			       "\n"
			       "int x_copy(to, from, size, int flags)\n"
			       "\tcall\n"
			       "\tstore to+8 size*2\n"
			       "\tflush to size if not flags & BIT|1 and result == 0\n"),
			 0);
	assert_true(table->library[0].trusted);
	assert_true(table->library[0].anywhere);
	assert_int_equal(function("x_copy")->effects, 3);
	assert_int_equal(effect("x_copy", 0)->verb, LIBRARY_CALL);
	assert_int_equal(effect("x_copy", 1)->value[0].terms, 2);
	assert_int_equal(effect("x_copy", 1)->value[0].term[1].constant, 8);
	assert_int_equal(effect("x_copy", 1)->value[1].term[1].operation, '*');
	assert_int_equal(effect("x_copy", 2)->conditions, 2);
	assert_int_equal(effect("x_copy", 2)->condition[0].mask, 5);
	assert_false(effect("x_copy", 2)->condition[0].negated);
	assert_int_equal(effect("x_copy", 2)->condition[0].value.term[0].word, 3);
	assert_true(effect("x_copy", 2)->condition[1].value.term[0].narrow);
	assert_int_equal(effect("x_copy", 2)->condition[1].value.term[0].source, LIBRARY_RESULT);
}

/* Two words that do not fit into the last register go to the stack, and the next word does not. */
static void places_parameters_as_the_abi_does(void **state)
{
	(void)state;
	assert_int_equal(parse("library *\n"
			       "object oid 2 address direct size usable\n"
			       "f(a, b, c, d, e, oid o, g, float x, h)\n"
			       "\tstore o size(o)\n"
			       "\tstore g h\n"
			       "v(a, ...)\n"
			       "\tfence\n"),
			 0);
	assert_int_equal(effect("f", 0)->value[0].term[0].word, LIBRARY_REGISTERS);
	assert_true(effect("f", 0)->value[1].term[0].size);
	assert_int_equal(effect("f", 1)->value[0].term[0].word, 5);
	assert_int_equal(effect("f", 1)->value[1].term[0].word, LIBRARY_REGISTERS + 2);
	assert_int_equal(function("f")->stack_words, 3);
	assert_true(function("v")->variadic);
	assert_int_equal(function("v")->stack_words, 0);
}

static void later_models_replace_earlier_ones(void **state)
{
	(void)state;
	assert_int_equal(parse("library a*\nf(p)\n\tflush p 1\n"), 0);
	assert_int_equal(library_parse_text(table, "n", "library b*\nf(p)\n\tfence\n\tfence\n",
					    error, sizeof(error)),
			 0);
	assert_int_equal(table->functions, 1);
	assert_int_equal(function("f")->effects, 2);
	assert_int_equal(effect("f", 0)->verb, LIBRARY_FENCE);
}

static void says_what_is_wrong(void **state)
{
	static const struct {
		const char *text, *message;
	} wrong[] = {
		{ "f(p)\n", "m:1: f before the first \"library\" line" },
		{ "library x\n\tflush p 1\n", "m:2: an effect before the first function" },
		{ "library x\nf(p)\n\tflsh p 1\n", "m:3: \"flsh\" is no effect" },
		{ "library x\nf(p)\n\tflush q 1\n", "m:3: \"q\" is no parameter of f" },
		{ "library x\nf(p)\n\tflush p\n", "m:3: too little: flush ADDRESS SIZE" },
		{ "library x\nf(p)\n\tflush p 1 2\n", "m:3: too much: flush ADDRESS SIZE" },
		{ "library x\nf(p)\n\tfence if p &\n", "m:3: \"\" is neither a number" },
		{ "library x\nf(p\n", "m:2: the list of parameters is not closed" },
		{ "library x\nf(void *p, size_t n)\n", "m:2: expected a comma or a parenthesis" },
		{ "library x\nf(p, p)\n", "m:2: two parameters are called p" },
		{ "library x\nf(p)\n\tfence\nf(p)\n", "m:4: f is described in line 2 already" },
		{ "library x\nf(p)\n\tcall\n\tcall\n", "m:4: a second \"call\"" },
		{ "library x\nf(p)\n\tfence if p = 0\n", "m:3: equality is written ==" },
		{ "constant A\n", "m:1: constant NAME NUMBER" },
		{ "library x\nf\n", "m:2: \"f\" starts no statement" },
		{ "library\n", "m:1: library: the name of its file is missing" },
		{ "library x y\n", "m:1: unexpected \"y\"" },
		{ "constant A B\n", "m:1: \"B\" is neither a number nor a constant" },
		{ "library x\nobject o 3 address f\n", "m:2: object NAME WORDS" },
		{ "library x\nobject o 2 address f\nobject o 2 address f\n",
		  "m:3: object o: already there" },
		{ "library x\ng()\n\tgives h\n", "m:3: gives: no model of h before this line" },
		{ "library x\nf(float a)\n\tflush a 1\n", "m:3: a is a float" },
		{ "library x\nf(p)\n\tflush p+1+2+3 1\n", "m:3: more than 3 terms" },
		{ "library x\nf(p)\n\tstore p size(p)\n", "m:3: the size of p is not known" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		assert_int_equal(parse(wrong[i].text), -1);
		if (strncmp(error, wrong[i].message, strlen(wrong[i].message)) != 0)
			fail_msg("%s\nis not\n%s", error, wrong[i].message);
	}
}

static int set_up(void **state)
{
	(void)state;
	table = calloc(1, sizeof(*table));
	return table ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	free(table);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_effects),
		cmocka_unit_test(places_parameters_as_the_abi_does),
		cmocka_unit_test(later_models_replace_earlier_ones),
		cmocka_unit_test(says_what_is_wrong),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
