/* SPDX-License-Identifier: BSD-3-Clause */
/* The tree of what recoveries read, and ways through it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "drive/memo.h"
#include "drive/path.h"

static struct read_record record(uint64_t line, uint64_t value)
{
	return (struct read_record){ .line = line, .bytes = 0xff, .value = value };
}

static const struct outcome *look_up(const struct memo *memo, const uint64_t *value)
{
	uint32_t node = memo_root(memo);

	while (node && memo_read(memo, node))
		node = memo_next(memo, node, *value++);
	return node ? memo_outcome(memo, node) : NULL;
}

static void knows_what_it_was_told(void **state)
{
	struct read_record a[] = { record(64, 1), record(128, 2) };
	struct read_record b[] = { record(64, 1), record(128, 3), record(192, 4) };
	struct read_record c[] = { record(64, 5) };
	struct outcome fine = { 0 }, bad = { .symptom = 11, .output = "words" };
	struct memo *memo = memo_new(1000);

	(void)state;
	assert_int_equal(memo_root(memo), 0);
	assert_true(memo_add(memo, a, 2, &fine));
	assert_true(memo_add(memo, b, 3, &bad));
	assert_true(memo_add(memo, c, 1, &fine));
	assert_true(memo_add(memo, b, 3, &bad)); /* once more */
	assert_int_equal(look_up(memo, (uint64_t[]){ 1, 2 })->symptom, 0);
	assert_int_equal(look_up(memo, (uint64_t[]){ 1, 3, 4 })->symptom, 11);
	assert_string_equal(look_up(memo, (uint64_t[]){ 1, 3, 4 })->output, "words");
	assert_non_null(look_up(memo, (uint64_t[]){ 5 }));
	assert_null(look_up(memo, (uint64_t[]){ 1, 3, 5 }));
	assert_null(look_up(memo, (uint64_t[]){ 6 }));
	memo_free(memo);
}

static void ends_stay_where_they_are(void **state)
{
	enum { MANY = 5000 };
	struct read_record first = record(64, 0);
	struct outcome fine = { .output = "the first" };
	struct memo *memo = memo_new(2 * MANY);
	const struct outcome *before;

	(void)state;
	assert_true(memo_add(memo, &first, 1, &fine));
	before = look_up(memo, (uint64_t[]){ 0 });
	for (uint64_t i = 1; i < MANY; i++)
		assert_true(memo_add(memo, (struct read_record[]){ record(64, i) }, 1, &fine));
	assert_ptr_equal(look_up(memo, (uint64_t[]){ 0 }), before);
	memo_free(memo);
}

static void keeps_no_more_than_it_may(void **state)
{
	struct read_record a[] = { record(64, 1), record(128, 2) };
	struct read_record b[] = { record(64, 1), record(128, 3), record(192, 4) };
	struct outcome fine = { 0 };
	struct memo *memo = memo_new(5);

	(void)state;
	assert_true(memo_add(memo, a, 2, &fine));
	assert_true(memo_add(memo, b, 3, &fine));
	assert_non_null(look_up(memo, (uint64_t[]){ 1, 2 }));
	assert_null(look_up(memo, (uint64_t[]){ 1, 3, 4 }));
	assert_true(memo_add(memo, a, 2, &fine));
	memo_free(memo);
}

static void contradictions(void **state)
{
	struct read_record a[] = { record(64, 1), record(128, 2) };
	struct read_record elsewhere[] = { record(64, 1), record(192, 2) };
	struct outcome fine = { 0 }, bad = { .symptom = 11 };
	struct memo *memo = memo_new(1000);

	(void)state;
	assert_true(memo_add(memo, a, 2, &fine));
	assert_false(memo_add(memo, a, 2, &bad));          /* ends otherwise */
	assert_false(memo_add(memo, elsewhere, 2, &fine)); /* goes elsewhere */
	assert_false(memo_add(memo, a, 1, &fine));         /* ends earlier */
	memo_free(memo);
}

static void many_values(void **state)
{
	struct memo *memo = memo_new(1 << 20);

	(void)state;
	for (uint64_t i = 0; i < 20000; i++) {
		struct read_record a[] = { record(64, i), record(128, i * 3) };
		struct outcome outcome = { .status = i };

		assert_true(memo_add(memo, a, 2, &outcome));
	}
	for (uint64_t i = 0; i < 20000; i++)
		assert_int_equal(look_up(memo, (uint64_t[]){ i, i * 3 })->status, i);
	memo_free(memo);
}

static void positions_of_lines(void **state)
{
	struct read_record outside = { .line = 999, .flags = READ_OUTSIDE };
	const uint64_t lines[] = { 128, 4096, 128 };
	const uint32_t *position;
	struct path path = { .known = false };

	(void)state;
	for (unsigned i = 0; i < 10; i++) {
		struct read_record read = record(64 + i % 3 * 64, i);

		path_add(&path, i == 5 ? &outside : &read, i + 1);
	}
	assert_int_equal(path_positions(&path, lines, 3, &position), 4);
	assert_int_equal(position[0], 1);
	assert_int_equal(position[1], 4);
	assert_int_equal(position[2], 5);
	assert_int_equal(position[3], 7);
	path_cut(&path, 5);
	assert_int_equal(path_positions(&path, lines, 3, &position), 2);
	path_changed(&path, 128);
	path_changed(&path, 128);
	path_changed(&path, 8192);
	assert_int_equal(path.changes, 1);
	path_cut(&path, 0);
	assert_int_equal(path_positions(&path, lines, 3, &position), 0);
	path_free(&path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(knows_what_it_was_told),
		cmocka_unit_test(ends_stay_where_they_are),
		cmocka_unit_test(keeps_no_more_than_it_may),
		cmocka_unit_test(contradictions),
		cmocka_unit_test(many_values),
		cmocka_unit_test(positions_of_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
