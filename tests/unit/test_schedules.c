/* SPDX-License-Identifier: BSD-3-Clause */
#include "drive/schedules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct schedule_settings *new_settings(void)
{
	struct schedule_settings *settings = calloc(1, sizeof(*settings));

	settings->choice = calloc(SCHEDULE_CHOICES, sizeof(*settings->choice));
	return settings;
}

static void free_settings(struct schedule_settings *settings)
{
	free(settings->choice);
	free(settings);
}

/* What a run does with its script: `ways` at each choice, until there is a 0. */
static void run(struct schedule_settings *settings, const uint8_t *ways)
{
	for (uint32_t i = 0; ways[i]; i++) {
		uint8_t taken = i < settings->script_length ? settings->choice[i].taken : 0;

		settings->choice[i] = (struct schedule_choice){ taken, ways[i] };
		settings->choices = i + 1;
	}
}

static void test_all_are_met_once(void **state)
{
	static const uint8_t ways[] = { 2, 3, 2, 0 };
	struct schedules schedules = { .policy = SCHEDULE_SCRIPT };
	struct schedule_settings *settings = new_settings();
	unsigned seen[12] = { 0 }, count = 0;

	(void)state;
	while (schedules_next(&schedules, settings)) {
		run(settings, ways);
		seen[settings->choice[0].taken * 6 + settings->choice[1].taken * 2 +
		     settings->choice[2].taken]++;
		count++;
	}
	assert_int_equal(count, 12);
	for (unsigned i = 0; i < 12; i++)
		assert_int_equal(seen[i], 1);
	assert_true(schedules.exhausted);
	free_settings(settings);
}

/* What comes later may depend on what was taken before. */
static void test_trees_of_any_shape(void **state)
{
	static const uint8_t left[] = { 2, 2, 0 }, right[] = { 2, 0 };
	struct schedules schedules = { .policy = SCHEDULE_SCRIPT };
	struct schedule_settings *settings = new_settings();
	unsigned count = 0;

	(void)state;
	while (schedules_next(&schedules, settings)) {
		bool first = !settings->script_length || !settings->choice[0].taken;

		settings->choices = 0;
		run(settings, first ? left : right);
		count++;
	}
	assert_int_equal(count, 3);
	free_settings(settings);
}

static void test_text_and_back(void **state)
{
	struct schedules schedules = { .policy = SCHEDULE_SCRIPT }, again = { 0 };
	struct schedule_settings *settings = new_settings(), *replayed = new_settings();
	char *text;

	(void)state;
	for (unsigned i = 0; i < 9; i++)
		settings->choice[i] = (struct schedule_choice){ i == 3 || i == 4 ? 2 : i == 6, 3 };
	settings->choices = 9;
	text = schedules_describe(&schedules, settings);
	assert_string_equal(text, "script:3x0,2x2,0,1");
	assert_true(schedules_parse(&again, text));
	assert_true(schedules_next(&again, replayed));
	assert_int_equal(replayed->script_length, 7);
	for (unsigned i = 0; i < 7; i++)
		assert_int_equal(replayed->choice[i].taken, settings->choice[i].taken);
	assert_false(schedules_next(&again, replayed));
	free(text);
	free_settings(settings);
	free_settings(replayed);
}

static void test_nonsense_is_refused(void **state)
{
	static const char *const bad[] = {
		"",           "detx",       "script",           "script:x",
		"script:1;2", "script:300", "script:9999999x1", "script:-1",
		"script:1x"
	};
	struct schedules schedules;

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_false(schedules_parse(&schedules, bad[i]));
}

static void test_random_ones_have_seeds(void **state)
{
	struct schedules schedules = { .policy = SCHEDULE_PCT, .seed = 7, .count = 2 };
	struct schedule_settings *settings = new_settings();
	char *text;

	(void)state;
	assert_true(schedules_is_measuring(&schedules));
	assert_true(schedules_next(&schedules, settings));
	assert_true(settings->measure);
	assert_int_equal(settings->policy, SCHEDULE_ROUND_ROBIN);
	settings->points = 123;
	for (uint64_t seed = 7; seed < 9; seed++) {
		assert_true(schedules_next(&schedules, settings));
		assert_false(settings->measure);
		assert_int_equal(settings->steps, 123);
		assert_int_equal(settings->seed, seed);
		settings->points = 55;
	}
	text = schedules_describe(&schedules, settings);
	assert_string_equal(text, "pct --seed 8");
	assert_false(schedules_next(&schedules, settings));
	free(text);
	free_settings(settings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_are_met_once),
		cmocka_unit_test(test_trees_of_any_shape),
		cmocka_unit_test(test_text_and_back),
		cmocka_unit_test(test_nonsense_is_refused),
		cmocka_unit_test(test_random_ones_have_seeds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
