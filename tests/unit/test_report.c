/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of the report that need no session: source lines, options, raw findings, stacks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/options.h"
#include "model/map.h"
#include "report/source.h"
#include "session/raw.h"
#include "session/stacks.h"

/* '^' in the line below marks the column. */
static const char source[] = "	list->length++;\n"
			     "	node->next[i] = p;\n"
			     "	*slot = 5;\n"
			     "	if (x) a.b = c;\n"
			     "	memcpy(to->text, from, n);\n"
			     "	total += 5;\n"
			     "	if (a == b)\n";

static void test_targets(void **state)
{
	static const struct {
		unsigned line, column;
		const char *target;
	} cases[] = {
		{ 1, 14, "list->length" },
		{ 2, 16, "node->next[i]" },
		{ 3, 8, "*slot" },
		{ 4, 13, "a.b" },
		{ 5, 2, "to->text" },
		{ 6, 8, "total" },
		{ 7, 8, NULL },
		{ 9, 1, NULL },
	};
	char path[] = "/tmp/perdure-source-XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_true(write(fd, source, sizeof(source) - 1) == sizeof(source) - 1);
	close(fd);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *target = source_target(path, cases[i].line, cases[i].column);

		if (cases[i].target)
			assert_string_equal(target, cases[i].target);
		else
			assert_null(target);
		free(target);
	}
	assert_string_equal(source_line(path, 3), "	*slot = 5;");
	unlink(path);
}

static void test_options(void **state)
{
	char *good[] = { "--pm", "a*", "--pm=b", "--model", "eadr", "--", "prog", "--pm", NULL };
	char *bad[] = { "--modle", "eadr", "prog", NULL };
	char *none[] = { "--quiet", NULL };
	static const char *const words[] = { "run", "check", NULL };
	struct options options;
	char **split;

	(void)state;
	assert_int_equal(options_parse(&options, good, OPTIONS_RUN), 0);
	assert_int_equal(options.session.globs, 2);
	assert_string_equal(options.session.glob[1], "b");
	assert_string_equal(options.command[0], "prog");
	assert_int_equal(options.session.enabled,
			 1u << KIND_MISSING_FENCE | 1u << KIND_STORE_OUTSIDE_TX |
				 1u << KIND_DUPLICATE_TX_ADD | 1u << KIND_CUSTOM |
				 1u << KIND_TORN_STORE | 1u << KIND_CROSS_FAILURE_RACE |
				 1u << KIND_CROSS_FAILURE_SEMANTIC | 1u << KIND_CRASH_SYMPTOM);
	assert_int_equal(options_parse(&options, bad, OPTIONS_RUN), 2);
	assert_int_equal(options_parse(&options, none, OPTIONS_CHECK), 2);
	assert_string_equal(options_suggest("chekc", words), "check");
	assert_null(options_suggest("explore", words));
	split = options_split(" --pm 'a b'  --quiet ");
	assert_string_equal(split[1], "a b");
	assert_string_equal(split[2], "--quiet");
	assert_null(split[3]);
	free(split[0]);
	free(split);
}

static void test_raw_is_bounded(void **state)
{
	struct raw_table table = { .slot = calloc(RAW_SLOTS, sizeof(uint32_t)),
				   .entry = calloc(RAW_ENTRIES, sizeof(struct raw_finding)) };
	uint64_t flushes = 0;

	(void)state;
	for (uint32_t i = 1; i <= 1000000; i++)
		raw_add(&table, &(struct raw_finding){ .kind = KIND_REDUNDANT_FLUSH, .stack = i },
			1);
	/* Another kind still finds room. */
	raw_add(&table, &(struct raw_finding){ .kind = KIND_MISSING_FLUSH, .stack = 5, .event = 9 },
		1);
	raw_add(&table, &(struct raw_finding){ .kind = KIND_MISSING_FLUSH, .stack = 5, .event = 9 },
		1);
	assert_int_equal(table.entries, RAW_PER_KIND + 1);
	for (uint32_t i = 1; i <= table.entries; i++)
		if (table.entry[i].kind == KIND_REDUNDANT_FLUSH)
			flushes += table.entry[i].count;
		else
			assert_int_equal(table.entry[i].count, 1);
	assert_int_equal(flushes, 1000000);
	free(table.slot);
	free(table.entry);
}

static void test_stacks(void **state)
{
	struct stacks stacks = { .slot = calloc(STACKS_SLOTS, sizeof(uint32_t)),
				 .word = calloc(1 << 16, sizeof(uint64_t)) };
	uintptr_t frames[3] = { 1, 2, 3 };
	uint32_t first, depth, image;
	bool added;
	static struct stacks_cache cache;

	(void)state;
	first = stacks_add(&stacks, &cache, 7, frames, 3, &added);
	assert_true(added);
	assert_int_equal(stacks_add(&stacks, &cache, 7, frames, 3, &added), first);
	assert_false(added);
	assert_int_not_equal(stacks_add(&stacks, &cache, 8, frames, 3, &added), first);
	assert_int_not_equal(stacks_add(&stacks, &cache, 7, frames, 2, &added), first);
	assert_int_equal(stacks_get(&stacks, first, &depth, &image)[2], 3);
	assert_int_equal(depth, 3);
	assert_int_equal(image, 7);
	free(stacks.slot);
	free(stacks.word);
}

static void test_map(void **state)
{
	struct map map = { 0 };

	(void)state;
	for (size_t i = 0; i < 10000; i++)
		assert_int_equal(map_get_or_put(&map, i * 64, i), i);
	for (size_t i = 0; i < 10000; i++)
		assert_int_equal(map_get_or_put(&map, i * 64, 5), i);
	map_free(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_targets),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_raw_is_bounded),
		cmocka_unit_test(test_stacks),
		cmocka_unit_test(test_map),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
