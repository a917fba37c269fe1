/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a crash can leave: the history of events against a machine that writes lines back whenever
 * it likes, for every crash point of random programs; and cases worked out by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/history.h"

enum { BASE = 4096, LINES = 3, SLOTS = 8, THREADS = 2, EVENTS = 24, SETS = 4096 };

static struct history_event event[256];
static unsigned char data[256 * 128];
static uint32_t events;
static struct history history;

static void add(uint8_t kind, uint8_t flags, uint16_t thread, uint64_t address, uint64_t size)
{
	event[events] = (struct history_event){
		.kind = kind,
		.flags = flags,
		.thread = thread,
		.address = address,
		.size = size,
		.data = events * 128,
	};
	memset(data + events * 128, events + 1, 128);
	events++;
}

static void build(void)
{
	assert_true(history_build(&history, event, events, data, false, malloc));
}

/* ---- the machine: the set of contents that may be in memory, for each line ---- */

/* A content is the number of the event that wrote each 8-byte slot. */
struct content {
	uint8_t slot[SLOTS];
};

struct set {
	struct content content[SETS];
	unsigned count;
};

static void set_add(struct set *set, const struct content *content)
{
	for (unsigned i = 0; i < set->count; i++)
		if (memcmp(&set->content[i], content, sizeof(*content)) == 0)
			return;
	assert_in_range(set->count, 0, SETS - 1);
	set->content[set->count++] = *content;
}

struct machine {
	struct content cache[LINES];
	struct set memory[LINES];               /* what may be there */
	struct set after_flush[THREADS][LINES]; /* what may be there if the flush has happened */
	bool flushed[THREADS][LINES];
};

static void machine_step(struct machine *m, uint32_t now)
{
	const struct history_event *e = &event[now];
	unsigned line = (e->address - BASE) / 64, thread = e->thread;

	switch (e->kind) {
	case HISTORY_STORE:
		for (uint64_t at = e->address; at < e->address + e->size; at += 8) {
			line = (at - BASE) / 64;
			m->cache[line].slot[at % 64 / 8] = now + 1;
			if (e->flags & HISTORY_SINGLE && at + 8 < e->address + e->size &&
			    (at + 8) % 64)
				continue;
			set_add(&m->memory[line], &m->cache[line]);
			for (unsigned t = 0; t < THREADS; t++)
				if (m->flushed[t][line])
					set_add(&m->after_flush[t][line], &m->cache[line]);
		}
		break;
	case HISTORY_FLUSH:
		m->flushed[thread][line] = true;
		m->after_flush[thread][line].count = 0;
		set_add(&m->after_flush[thread][line], &m->cache[line]);
		break;
	case HISTORY_ORDERED:
		m->memory[line].count = 0;
		set_add(&m->memory[line], &m->cache[line]);
		for (unsigned t = 0; t < THREADS; t++)
			m->flushed[t][line] = false;
		break;
	case HISTORY_FENCE:
		for (line = 0; line < LINES; line++) {
			struct set old = m->memory[line];

			if (!m->flushed[thread][line])
				continue;
			/* Both hold: what was possible so far, and what is after the flush. */
			m->memory[line].count = 0;
			for (unsigned i = 0; i < old.count; i++)
				for (unsigned k = 0; k < m->after_flush[thread][line].count; k++)
					if (memcmp(&old.content[i],
						   &m->after_flush[thread][line].content[k],
						   sizeof(struct content)) == 0)
						set_add(&m->memory[line], &old.content[i]);
			m->flushed[thread][line] = false;
		}
		break;
	default:
		break;
	}
}

/* ---- the history must say the same ---- */

static void look(const struct history_line *line, uint32_t crash, struct history_versions *versions)
{
	struct history_window window = { .line = line };

	history_advance(&history, &window, crash);
	history_versions(&history, &window, crash, versions);
}

static void content_of(const struct history_versions *versions, uint32_t version,
		       unsigned char bytes[64])
{
	history_apply(&history, versions->window.line, 0, versions->window.from, bytes);
	history_content(&history, versions, version, bytes);
}

/* The event that wrote the byte last. */
static uint32_t writer_of(const struct history_versions *versions, uint32_t version, unsigned byte)
{
	const struct history_line *line = versions->window.line;
	uint32_t writer[64];

	history_writers(&history, versions, version, writer);
	if (writer[byte] == HISTORY_NEVER)
		writer[byte] = history_last_writer(&history, line, versions->window.from, byte);
	return writer[byte] == HISTORY_NEVER ? HISTORY_NEVER
					     : history.part[line->first + writer[byte]].event;
}

static void compare(const struct machine *m, uint32_t crash)
{
	static struct history_versions versions;

	for (unsigned line = 0; line < LINES; line++) {
		const struct history_line *found = history_find(&history, BASE + line * 64);
		static struct set possible;

		possible.count = 0;
		if (!found) {
			set_add(&possible, &(struct content){ { 0 } });
		} else {
			look(found, crash, &versions);
			assert_false(versions.cut);
			assert_int_equal(history_is_certain(&versions.window), versions.count == 1);
			for (uint32_t v = 0; v < versions.count; v++) {
				unsigned char bytes[64] = { 0 };
				struct content content;

				content_of(&versions, v, bytes);
				for (unsigned s = 0; s < SLOTS; s++) {
					uint32_t writer = writer_of(&versions, v, s * 8);

					content.slot[s] = bytes[s * 8];
					assert_int_equal(bytes[s * 8],
							 writer == HISTORY_NEVER ? 0 : writer + 1);
				}
				set_add(&possible, &content);
			}
		}
		assert_int_equal(possible.count, m->memory[line].count);
		for (unsigned i = 0; i < possible.count; i++) {
			unsigned before = m->memory[line].count;
			struct set copy = m->memory[line];

			set_add(&copy, &possible.content[i]);
			assert_int_equal(copy.count, before);
		}
	}
}

static void agrees_with_the_machine(void **state)
{
	static struct machine m;

	(void)state;
	srand(3);
	for (int round = 0; round < 3000; round++) {
		events = 0;
		for (int i = 0; i < EVENTS; i++) {
			unsigned line = rand() % LINES, slot = rand() % SLOTS,
				 thread = rand() % THREADS;
			uint64_t at = BASE + line * 64 + slot * 8, size = 8;

			switch (rand() % 8) {
			case 0:
				add(HISTORY_ORDERED, 0, thread, at, 0);
				break;
			case 1:
			case 2:
				add(HISTORY_FLUSH, 0, thread, at, 0);
				break;
			case 3:
				add(HISTORY_FENCE, 0, thread, 0, 0);
				break;
			case 4:
				size = 8 * (1 + rand() % 12);
				if (at + size > BASE + LINES * 64)
					size = BASE + LINES * 64 - at;
				add(HISTORY_STORE, rand() % 2 ? HISTORY_SINGLE : 0, thread, at,
				    size);
				break;
			default:
				add(HISTORY_STORE, 0, thread, at, size);
			}
		}
		build();
		memset(&m, 0, sizeof(m));
		for (unsigned line = 0; line < LINES; line++)
			set_add(&m.memory[line], &m.cache[line]);
		for (uint32_t now = 0; now < events; now++) {
			compare(&m, now);
			machine_step(&m, now);
		}
		compare(&m, events);
		free(history.memory);
	}
}

/*
 * No state is missed. If something was stored since the last crash point, the next one comes before
 * anything shrinks the sets, so it has all that is possible now; otherwise the last one has.
 */
static void crash_points_are_enough(void **state)
{
	static struct history_versions a, b;

	(void)state;
	srand(4);
	for (int round = 0; round < 500; round++) {
		events = 0;
		for (int i = 0; i < EVENTS; i++) {
			uint64_t at = BASE + rand() % LINES * 64;

			switch (rand() % 5) {
			case 0:
				add(HISTORY_ORDERED, 0, 0, at, 0);
				break;
			case 1:
				add(HISTORY_FLUSH, 0, 0, at, 0);
				break;
			case 2:
				add(HISTORY_FENCE, 0, 0, 0, 0);
				break;
			default:
				add(HISTORY_STORE, 0, 0, at, 8);
			}
		}
		build();
		for (uint32_t now = 0; now <= events; now++) {
			uint32_t next = 0, stored;

			while (history.crash[next] < now)
				next++;
			for (stored = next ? history.crash[next - 1] : 0; stored < now; stored++)
				if (event[stored].kind == HISTORY_STORE)
					break;
			if (next && stored == now && history.crash[next] != now)
				next--;
			for (uint32_t i = 0; i < history.lines; i++) {
				look(&history.line[i], now, &a);
				look(&history.line[i], history.crash[next], &b);
				for (uint32_t v = 0; v < a.count; v++) {
					unsigned char wanted[64] = { 0 };
					bool found = false;

					content_of(&a, v, wanted);
					for (uint32_t w = 0; w < b.count && !found; w++) {
						unsigned char got[64] = { 0 };

						content_of(&b, w, got);
						found = memcmp(got, wanted, 64) == 0;
					}
					assert_true(found);
				}
			}
		}
		free(history.memory);
	}
}

static uint32_t count_at(uint64_t address, uint32_t crash)
{
	static struct history_versions versions;

	look(history_find(&history, address), crash, &versions);
	return versions.count;
}

/* Each 8-byte piece of a non-temporal store comes by itself, until the thread's fence. */
static void streaming_stores_are_loose(void **state)
{
	(void)state;
	events = 0;
	add(HISTORY_STORE, HISTORY_NONTEMPORAL, 0, BASE, 16);
	add(HISTORY_FENCE, 0, 1, 0, 0);
	add(HISTORY_FENCE, 0, 0, 0, 0);
	build();
	assert_int_equal(count_at(BASE, 1), 4);
	assert_int_equal(count_at(BASE, 2), 4);
	assert_int_equal(count_at(BASE, 3), 1);
	assert_int_equal(history.crashes, 2);
	assert_int_equal(history.crash[0], 2);
	free(history.memory);
}

static void durable_at_once(void **state)
{
	(void)state;
	events = 0;
	add(HISTORY_STORE, 0, 0, BASE, 8);
	add(HISTORY_STORE, 0, 0, BASE + 64, 8);
	add(HISTORY_PERSIST, 0, 0, BASE + 64, 64);
	add(HISTORY_STORE, HISTORY_FOREIGN, 0, BASE, 8);
	build();
	assert_int_equal(count_at(BASE, 3), 2);
	assert_int_equal(count_at(BASE + 64, 3), 1);
	assert_int_equal(count_at(BASE, 4),
			 2); /* two versions, of one content: the foreign store's */
	assert_int_equal(history.crash[0], 2);
	free(history.memory);
}

static void long_histories_are_cut(void **state)
{
	static struct history_versions versions;

	(void)state;
	events = 0;
	for (int i = 0; i < 250; i++)
		add(HISTORY_STORE, i % 50 ? 0 : HISTORY_NONTEMPORAL, 0, BASE, 8);
	build();
	look(history_find(&history, BASE), events, &versions);
	assert_true(versions.cut);
	assert_int_equal(versions.count, 2);
	assert_int_equal(writer_of(&versions, 0, 0), HISTORY_NEVER);
	assert_int_equal(writer_of(&versions, 1, 0), 249);
	free(history.memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_the_machine),
		cmocka_unit_test(crash_points_are_enough),
		cmocka_unit_test(streaming_stores_are_loose),
		cmocka_unit_test(durable_at_once),
		cmocka_unit_test(long_histories_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
