/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets of ranges against a bitmap, and the life of transactions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/transactions.h"

enum { COUNT = 1024, BYTES = 512 };

static struct range memory[2 * COUNT];
static struct reservations reservations;
static struct transactions tx;

static void begin(void)
{
	transactions_init(&tx, memory, COUNT);
	transactions_begin(&tx, 1, 0, 0);
}

/* No lines are needed for what these tests ask: ranges lie outside of them. */
static void finish(bool commit)
{
	static uint8_t touched[4];
	static struct lines_line line[4 * 256];
	struct lines lines = { .count = 4 * 256, .line = line, .touched = touched };
	struct lines_thread thread = { .id = 1, .owner = 1 };

	transactions_finish(&tx, &lines, &thread, commit, true, 9);
}

static void agrees_with_a_bitmap(void **state)
{
	(void)state;
	srand(1);
	for (int round = 0; round < 200; round++) {
		uint32_t owner[BYTES] = { 0 };

		begin();
		for (uint32_t stack = 2; stack < 40; stack++) {
			uint64_t start = rand() % BYTES, size = 1 + rand() % 60;
			uint32_t first = 0, earlier;
			uint64_t again, logged = 0;

			if (start + size > BYTES)
				size = BYTES - start;
			for (uint64_t i = start; i < start + size; i++) {
				first = first ? first : owner[i];
				logged += owner[i] != 0;
			}
			earlier = transactions_add(&tx, start, size, stack, 0, &again);
			assert_int_equal(earlier, first);
			assert_int_equal(again, logged);
			for (uint64_t i = start; i < start + size; i++)
				if (!owner[i])
					owner[i] = stack;
			for (int check = 0; check < 20; check++) {
				uint64_t at = rand() % BYTES, length = 1 + rand() % 40;
				bool all = true;

				for (uint64_t i = at; i < at + length; i++)
					all &= i < BYTES && owner[i];
				assert_int_equal(transactions_protects(&tx, at, length), all);
			}
		}
	}
}

static void nested_ones_are_flat(void **state)
{
	(void)state;
	begin();
	transactions_begin(&tx, 2, 0, 0);
	assert_int_equal(transactions_stack(&tx), 2);
	transactions_add(&tx, 10, 4, 3, 0, &(uint64_t){ 0 });
	finish(true);
	assert_false(transactions_working(&tx));
	transactions_end(&tx);
	assert_true(transactions_working(&tx));
	assert_true(transactions_protects(&tx, 10, 4));
	assert_int_equal(transactions_add(&tx, 8, 4, 4, 0, &(uint64_t){ 0 }), 3);
	finish(true);
	transactions_end(&tx);
	assert_int_equal(tx.depth, 0);
	transactions_begin(&tx, 5, 0, 0);
	assert_false(transactions_protects(&tx, 10, 4));
}

static void new_objects_are_not_in_the_log(void **state)
{
	(void)state;
	begin();
	transactions_alloc(&tx, 100, 50, 2, 0);
	assert_true(transactions_protects(&tx, 100, 50));
	assert_int_equal(transactions_add(&tx, 100, 10, 3, 0, &(uint64_t){ 0 }), 0);
	assert_true(transactions_protects(&tx, 140, 10));
	finish(false);
	transactions_end(&tx);
	transactions_begin(&tx, 5, 0, 0);
	assert_false(transactions_protects(&tx, 100, 1));
}

static void reserved_objects_are_free_until_they_are_published(void **state)
{
	struct lines_thread thread = { .id = 1, .owner = 1 };

	(void)state;
	begin();
	tx.reservations = &reservations;
	reservations_add(&reservations, 1,
			 &(struct reservation){ .process = 1, .key = 7, .start = 200, .end = 250 });
	reservations_add(&reservations, 1,
			 &(struct reservation){ .process = 1, .key = 8, .start = 300, .end = 350 });
	assert_true(transactions_protects(&tx, 200, 50));
	assert_false(transactions_protects(&tx, 249, 2));
	reservations_publish_later(&reservations, &thread, 0, 7);
	assert_true(transactions_protects(&tx, 200, 50));
	finish(true);
	transactions_end(&tx);
	transactions_begin(&tx, 6, 0, 0);
	assert_false(transactions_protects(&tx, 200, 1));
	assert_true(transactions_protects(&tx, 300, 50)); /* the other one is still reserved */
}

static void only_its_own_pool_counts(void **state)
{
	(void)state;
	transactions_init(&tx, memory, COUNT);
	assert_true(transactions_covers(&tx, 5, 1)); /* no transaction */
	transactions_begin(&tx, 1, 1000, 2000);
	assert_true(transactions_covers(&tx, 500, 8));
	assert_true(transactions_covers(&tx, 2000, 8));
	assert_false(transactions_covers(&tx, 1500, 8));
	assert_false(transactions_protects(&tx, 500, 8));
}

static void out_of_room_is_silent(void **state)
{
	(void)state;
	begin();
	for (uint64_t i = 0; i < 2 * COUNT; i++)
		transactions_add(&tx, 10 * i, 1, 2, 0, &(uint64_t){ 0 });
	assert_true(tx.full);
	assert_true(transactions_protects(&tx, 5, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_a_bitmap),
		cmocka_unit_test(nested_ones_are_flat),
		cmocka_unit_test(new_objects_are_not_in_the_log),
		cmocka_unit_test(reserved_objects_are_free_until_they_are_published),
		cmocka_unit_test(only_its_own_pool_counts),
		cmocka_unit_test(out_of_room_is_silent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
