/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a recovery reads: against a list of all contents that are left after each read; and cases
 * worked out by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/view.h"

enum { BASE = 4096, EVENTS = 64, DATA = 128 };

static struct history_event event[EVENTS];
static unsigned char data[EVENTS * DATA];
static uint32_t events;
static struct history history;
static struct view_line line[4];
static struct view_state state[4];
static uint32_t indices[16];
static struct view_crash crash;
static const unsigned char zero[HISTORY_LINE_SIZE];

static void add(uint8_t kind, uint8_t flags, uint64_t address, uint64_t size, unsigned char value)
{
	event[events] = (struct history_event){ .kind = kind,
						.flags = flags,
						.address = address,
						.size = size,
						.data = events * DATA };
	memset(data + events * DATA, value, DATA);
	events++;
}

/* A crash at the end; the first `lines` lines are as the history says. */
static struct view start(bool latest)
{
	assert_true(history_build(&history, event, events, data, false, malloc));
	crash = (struct view_crash){ .crash = events, .line = line, .index = indices, .mask = 15 };
	memset(indices, 0, sizeof(indices));
	memset(state, 0, sizeof(state));
	for (uint32_t i = 0; i < history.lines; i++) {
		struct history_window window = { .line = &history.line[i] };

		history_advance(&history, &window, events);
		if (history_is_certain(&window))
			continue;
		line[crash.lines++] = (struct view_line){ .address = history.line[i].address,
							  .line = i,
							  .from = window.from,
							  .to = window.to };
	}
	view_index(line, crash.lines, indices, 15);
	return (struct view){
		.history = &history, .crash = &crash, .state = state, .latest = latest
	};
}

static uint64_t bytes(unsigned from, unsigned count)
{
	return (count == 64 ? ~0ull : (1ull << count) - 1) << from;
}

static unsigned char value_of(const struct view_read *read, unsigned byte)
{
	unsigned char content[HISTORY_LINE_SIZE] = { 0 };

	history_content(&history, &read->versions, read->version, content);
	return content[byte];
}

static void policies(void **unused)
{
	struct view_read read;
	struct view view;

	(void)unused;
	events = 0;
	add(HISTORY_STORE, 0, BASE, 8, 1);
	add(HISTORY_STORE, 0, BASE + 8, 8, 2);
	for (int latest = 0; latest < 2; latest++) {
		view = start(latest);
		view_read(&view, BASE, bytes(8, 8), zero, &read);
		assert_int_equal(value_of(&read, 8), latest ? 2 : 0);
		assert_int_equal(read.open, bytes(8, 8));
		assert_int_equal(read.commit, 0);
		assert_true(read.differs);
		assert_int_equal(view.choices, 0);
		/* A line is written back in order: with the second store there is the first. */
		view_read(&view, BASE, bytes(0, 8), zero, &read);
		assert_int_equal(value_of(&read, 0), latest ? 1 : 0);
		assert_int_equal(read.open, latest ? 0 : bytes(0, 8));
		free(history.memory);
	}
	view = start(true);
	view_read(&view, BASE + 64, bytes(0, 8), zero, &read);
	assert_null(read.line);
	free(history.memory);
}

static void commit_stores_are_chosen(void **unused)
{
	const uint8_t script[1] = { 1 };
	struct view_read read;
	struct view view;

	(void)unused;
	events = 0;
	add(HISTORY_STORE, 0, BASE, 8, 1);
	add(HISTORY_STORE, HISTORY_ATOMIC, BASE + 8, 8, 2);
	view = start(true);
	view_read(&view, BASE, bytes(8, 8), zero, &read);
	assert_int_equal(read.open, bytes(8, 8));
	assert_int_equal(read.commit, bytes(8, 8));
	assert_int_equal(view.choices, 1);
	assert_int_equal(view.options[0], 2);
	assert_int_equal(value_of(&read, 8), 2);
	view_read(&view, BASE, bytes(0, 8), zero, &read);
	assert_int_equal(read.open, 0); /* the data came before the commit, on the same line */
	free(history.memory);

	view = start(true);
	view.script = script;
	view.script_length = 1;
	view_read(&view, BASE, bytes(8, 8), zero, &read);
	assert_int_equal(value_of(&read, 8), 0);
	assert_true(read.chosen);
	view_read(&view, BASE, bytes(0, 8), zero, &read);
	assert_int_equal(read.open, bytes(0, 8)); /* without the commit it may be there or not */
	assert_int_equal(value_of(&read, 0), 1);
	free(history.memory);

	view = start(true);
	view.strict = true;
	view_read(&view, BASE, bytes(8, 8), zero, &read);
	assert_int_equal(read.commit, 0);
	free(history.memory);

	view = start(true);
	view.commit = &(struct view_range){ BASE, BASE + 8 };
	view.commits = 1;
	view_read(&view, BASE, bytes(0, 8), zero, &read);
	assert_int_equal(read.commit, bytes(0, 8));
	free(history.memory);
}

static void equal_values_make_no_difference(void **unused)
{
	struct view_read read;
	struct view view;

	(void)unused;
	events = 0;
	add(HISTORY_STORE, 0, BASE, 8, 0);
	view = start(true);
	view_read(&view, BASE, bytes(0, 8), zero, &read);
	assert_int_equal(read.open, bytes(0, 8));
	assert_false(read.differs);
	free(history.memory);
}

/* ---- against all contents that are left ---- */

struct possible {
	bool left;
	unsigned char content[HISTORY_LINE_SIZE];
	uint32_t writer[HISTORY_LINE_SIZE];
};

static uint64_t several_writers(const struct possible *all, uint32_t count, uint64_t wanted)
{
	uint64_t open = 0;

	for (unsigned b = 0; b < HISTORY_LINE_SIZE; b++)
		for (uint32_t i = 0; i < count; i++)
			for (uint32_t k = 0; k < i; k++)
				if (wanted >> b & 1 && all[i].left && all[k].left &&
				    all[i].writer[b] != all[k].writer[b])
					open |= 1ull << b;
	return open;
}

static void agrees_with_a_list(void **unused)
{
	static struct possible all[HISTORY_VERSIONS];

	(void)unused;
	srand(5);
	for (int round = 0; round < 2000; round++) {
		struct history_versions versions;
		struct view view;

		events = 0;
		for (int i = 0; i < 7; i++) {
			unsigned at = rand() % 7 * 8, size = 8 * (1 + rand() % 2);
			unsigned kind = rand() % 6;

			if (kind == 5)
				add(HISTORY_ORDERED, 0, BASE, 0, 0);
			else
				add(HISTORY_STORE, kind == 4 ? HISTORY_NONTEMPORAL : 0, BASE + at,
				    size, rand() % 3);
		}
		view = start(rand() % 2);
		if (crash.lines)
			view_versions(&history, &crash, &line[0], &versions);
		if (!crash.lines || versions.cut) {
			free(history.memory);
			continue;
		}
		for (uint32_t v = 0; v < versions.count; v++) {
			all[v].left = true;
			memset(all[v].content, 0, sizeof(all[v].content));
			history_content(&history, &versions, v, all[v].content);
			history_writers(&history, &versions, v, all[v].writer);
		}
		for (int i = 0; i < 4; i++) {
			uint64_t wanted = bytes(rand() % 60, 1 + rand() % 4);
			struct view_read read;
			bool any = false;

			view_read(&view, BASE, wanted, zero, &read);
			assert_int_equal(read.open, several_writers(all, versions.count, wanted));
			for (uint32_t v = 0; v < versions.count; v++)
				for (unsigned b = 0; b < HISTORY_LINE_SIZE; b++)
					if (wanted >> b & 1 &&
					    all[v].content[b] != value_of(&read, b))
						all[v].left = false;
			for (uint32_t v = 0; v < versions.count; v++)
				any |= all[v].left;
			assert_true(any);
			assert_true(all[read.version].left);
		}
		free(history.memory);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(policies),
		cmocka_unit_test(commit_stores_are_chosen),
		cmocka_unit_test(equal_values_make_no_difference),
		cmocka_unit_test(agrees_with_a_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
