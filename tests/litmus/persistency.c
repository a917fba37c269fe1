/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Litmus tests of the persistency state: a small program, and what may be lost at its end.
 *
 * A program is a list of operations, "T:" in front names another thread than 1:
 *   Wx  store to location x       Nx  non-temporal store      Cx  clwb/clflushopt   Lx  clflush
 *   S   sfence   M  mfence/locked instruction   Px  msync of x's line   Ux  unmap x's line
 * Locations a, b, c are on three lines; A is on a's line, beside it; x straddles b and c.
 * The outcome lists lost locations: "a!" never flushed, "a?" flushed and not fenced; then
 * redundant operations by their number from 1: "r3".
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/lines.h"

enum { LINES = 256, POOL = 4096, THREADS = 4 };

static const struct litmus {
	const char *program, *outcome;
} px86[] = {
	/* one store */
	{ "Wa", "a!" },
	{ "Wa Ca", "a?" },
	{ "Wa Ca S", "" },
	{ "Wa Ca M", "" },
	{ "Wa La", "" },
	{ "Wa S", "a!" },
	{ "Ca Wa S", "a! r1" },
	{ "Wa S Ca", "a?" },
	{ "Wa Pa", "" },
	{ "Wa Ca Pa", "" },
	/* a store between flush and fence is not covered */
	{ "Wa Ca Wa S", "a!" },
	{ "Wa Ca WA S", "A!" },
	{ "Wa Ca WA Ca S", "" },
	{ "Wa Ca Wa La", "" },
	{ "Wa Ca Wa Ca", "a?" },
	{ "Wa Ca Wa Ca S", "" },
	{ "Wa Ca WA 2:Ca Ca S", "" },
	/* the flush is of the whole line */
	{ "Wa WA Ca S", "" },
	{ "Wa WA CA S", "" },
	{ "Wa Wb Ca S", "b!" },
	{ "Wa Wb Ca Cb S", "" },
	{ "Wx Cb S", "x!" },
	{ "Wx Cb Cc S", "" },
	{ "Wx Cb S Cc", "x?" },
	/* only the last writer of a byte counts */
	{ "Wa Wa Ca S", "" },
	{ "Wa Wa", "a!" },
	{ "Wa Ca S Wa", "a!" },
	/* a fence completes its own thread's flushes only */
	{ "Wa Ca 2:S", "a?" },
	{ "Wa 2:Ca S", "a?" },
	{ "Wa 2:Ca 2:S", "" },
	{ "Wa Ca 2:Ca 2:S", "" },
	{ "Wa Ca 2:Ca S", "" },
	{ "Wa Ca 2:La", "" },
	{ "Wa 2:Ca Wa 2:S", "a!" },
	{ "Wa 2:WA Ca S", "" },
	{ "Wa Ca 2:WA S", "A!" },
	{ "Wa Ca 2:Wa S", "a!" },
	{ "Wa 2:Ca 3:Ca 3:S 2:S", "" },
	/* non-temporal stores need a fence and no flush */
	{ "Na", "a?" },
	{ "Na S", "" },
	{ "Na M", "" },
	{ "Na 2:S", "a?" },
	{ "Na WA S", "A!" },
	{ "WA Na S", "A!" },
	{ "WA Na CA S", "" },
	{ "Na Wa S", "a!" },
	{ "Wa Na S", "" },
	{ "Na La", "r2 a?" },
	{ "Na 2:Ca 2:S", "a?" },
	{ "Na 2:La", "a?" },
	{ "Na 2:Pa", "" },
	{ "2:Na WA CA S", "a?" },
	/* redundant flushes */
	{ "Ca", "r1" },
	{ "La", "r1" },
	{ "Wa Ca Ca S", "r3" },
	{ "Wa Ca S Ca", "r4" },
	{ "Wa La Ca", "r3" },
	{ "Wa Ca La", "r3" },
	{ "Wa Ca WA Ca S", "" },
	{ "Wa Ca 2:Ca S 2:S", "" },
	{ "Wa Ca S 2:Ca", "r4" },
	{ "Na Ca S", "r2" },
	{ "Na WA Ca S", "" },
	{ "Wa Pa Ca", "r3" },
	/* unmapping judges at once, and nothing after it counts */
	{ "Wa Ua Ca S", "a! r3" },
	{ "Wa Ca Ua S", "a?" },
	{ "Wa Ca S Ua", "" },
	{ "Wa Wb Ua Cb S", "a!" },
};

/* Persistent caches: only non-temporal stores can be lost. */
static const struct litmus eadr[] = {
	{ "Wa", "" },   { "Wa Ca Ca S S", "" }, { "Na", "a?" },
	{ "Na S", "" }, { "Na 2:S", "a?" },     { "Na Wb", "a?" },
};

/* ---- the machine ---- */

static struct lines lines;
static struct lines_line line[LINES];
static struct lines_store store[POOL];
static struct lines_flush flush[POOL];
static uint8_t touched[LINES];
static struct lines_thread threads[THREADS];
static char outcome[256];
static unsigned operation;

static uint64_t address_of(char location)
{
	switch (location) {
	case 'A':
		return lines.base + 8;
	case 'b':
		return lines.base + 64;
	case 'c':
		return lines.base + 128;
	case 'x':
		return lines.base + 124;
	default:
		return lines.base;
	}
}

static void say(const char *format, ...)
{
	size_t length = strlen(outcome);
	char text[32];
	va_list values;

	va_start(values, format);
	vsnprintf(text, sizeof(text), format, values);
	va_end(values);
	if (!strstr(outcome, text))
		snprintf(outcome + length, sizeof(outcome) - length, "%s%s", length ? " " : "",
			 text);
}

static void on_redundant_flush(struct lines *l, const struct lines_thread *thread, uint64_t address,
			       uint32_t stack, uint32_t earlier)
{
	(void)l, (void)thread, (void)address, (void)stack, (void)earlier;
	say("r%u", operation);
}

/* Stack numbers are the locations' letters. */
static void on_lost(struct lines *l, const struct lines_thread *thread, uint64_t address,
		    unsigned size, const struct lines_store *lost, uint32_t by)
{
	(void)l, (void)thread, (void)address, (void)size;
	say("%c%c", (char)lost->stack, by ? '?' : '!');
}

static const struct lines_listener listener = {
	.redundant_flush = on_redundant_flush,
	.lost = on_lost,
};
static const struct lines_listener *const listeners[] = { &listener, NULL };

static void reset(enum lines_model model)
{
	memset(line, 0, sizeof(line));
	memset(touched, 0, sizeof(touched));
	memset(threads, 0, sizeof(threads));
	outcome[0] = 0;
	lines = (struct lines){
		.model = model,
		.base = 1 << 20,
		.count = LINES,
		.line = line,
		.store = store,
		.flush = flush,
		.touched = touched,
		.stores.capacity = POOL,
		.flushes.capacity = POOL,
		.concurrent = 1,
	};
	for (unsigned i = 0; i < THREADS; i++)
		threads[i].id = threads[i].owner = i + 1;
	lines_listen(listeners);
}

static void do_store(struct lines_thread *thread, char location, bool nontemporal)
{
	uint64_t address = address_of(location), end = address + 8;

	thread->event++;
	while (address < end) {
		uint64_t stop = (address | 63) + 1;

		if (stop > end)
			stop = end;
		assert_true(lines_begin(&lines, thread, address));
		lines_end_store(&lines, thread, address, lines_bytes(address, stop - address),
				location, nontemporal);
		address = stop;
	}
}

static void do_operation(struct lines_thread *thread, const char *text)
{
	uint64_t address = address_of(text[1]) & ~63ull;

	switch (text[0]) {
	case 'W':
	case 'N':
		do_store(thread, text[1], text[0] == 'N');
		break;
	case 'C':
	case 'L':
		lines_flush(&lines, thread, address, 'f',
			    text[0] == 'L' ? LINES_ORDERED : LINES_FLUSH, NULL);
		break;
	case 'S':
	case 'M':
		lines_fence(&lines, thread, 's', false);
		break;
	case 'P':
		lines_persist(&lines, thread, address, 64, 'p');
		break;
	case 'U':
		lines_lose(&lines, thread, address, 64);
		break;
	default:
		fail_msg("unknown operation %s", text);
	}
}

static void run(const struct litmus *test, enum lines_model model)
{
	char program[256], *rest;

	reset(model);
	strcpy(program, test->program);
	operation = 0;
	for (char *word = strtok_r(program, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		struct lines_thread *thread = &threads[0];

		operation++;
		if (word[1] == ':') {
			thread = &threads[word[0] - '1'];
			word += 2;
		}
		do_operation(thread, word);
	}
	lines_lose(&lines, NULL, lines.base, 64 * LINES);
}

/* Order in the outcome does not matter. */
static bool same_words(const char *a, const char *b)
{
	char copy[256], *rest;

	if (strlen(a) != strlen(b))
		return false;
	strcpy(copy, a);
	for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		if (!strstr(b, word))
			return false;
	return true;
}

static void run_all(const struct litmus *tests, size_t count, enum lines_model model)
{
	for (size_t i = 0; i < count; i++) {
		run(&tests[i], model);
		if (!same_words(outcome, tests[i].outcome))
			fail_msg("\"%s\": lost \"%s\", should be \"%s\"", tests[i].program, outcome,
				 tests[i].outcome);
	}
}

static void test_px86(void **state)
{
	(void)state;
	run_all(px86, sizeof(px86) / sizeof(*px86), LINES_PX86);
}

static void test_eadr(void **state)
{
	(void)state;
	run_all(eadr, sizeof(eadr) / sizeof(*eadr), LINES_EADR);
}

int main(void)
{
	const struct CMUnitTest all[] = { cmocka_unit_test(test_px86),
					  cmocka_unit_test(test_eadr) };

	return cmocka_run_group_tests(all, NULL, NULL);
}
