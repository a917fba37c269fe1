/* SPDX-License-Identifier: BSD-3-Clause */
#include "checkers/torn.h"

#include <stdlib.h>
#include <string.h>

#include "model/map.h"

enum { LINE = HISTORY_LINE_SIZE, RANGES = 1024 };

/* A flush of a line that has been completed: by itself, or by a fence of its thread. */
struct flush {
	uint32_t line; /* in history.line */
	uint32_t event, done;
};

/* What a thread knew from some event on. */
struct moment {
	uint32_t event;
	const uint32_t *known; /* how many events of each thread, by number */
	uint32_t count;
};

struct timeline {
	uint32_t number;       /* of the thread in the log */
	struct moment *moment; /* by event */
	uint32_t moments;
};

/* What is known of the writing back of a line. */
struct line_state {
	uint32_t round; /* not the current one: nothing */
	uint32_t *known;
};

struct torn {
	const struct history *history;
	struct torn_settings settings;
	struct timeline *thread; /* dense */
	uint32_t threads;
	uint16_t *index_of;  /* number of a thread to its place */
	struct flush *flush; /* by line, then by event */
	uint32_t flushes;
	uint8_t *exempt; /* one bit an event: what is stored there is somebody else's business */

	uint32_t round;
	uint32_t *seen; /* how many events of each thread the recovery must have had before it */
	struct line_state *line;
	uint32_t lines, line_room;
	struct map line_of; /* address to its place in the list */
	struct map reported;
};

static void *allocate(size_t count, size_t size)
{
	void *memory = calloc(count + 1, size);

	if (!memory)
		abort();
	return memory;
}

/* ---- who knew what ---- */

static uint32_t thread_of(const struct torn *torn, uint32_t event)
{
	return torn->index_of[torn->history->event[event].thread];
}

static void list_threads(struct torn *torn)
{
	const struct history *history = torn->history;
	uint32_t *moments;

	torn->index_of = allocate(UINT16_MAX + 1, sizeof(*torn->index_of));
	torn->thread = allocate(UINT16_MAX + 1, sizeof(*torn->thread));
	memset(torn->index_of, 0xff, (UINT16_MAX + 1) * sizeof(*torn->index_of));
	for (uint32_t i = 0; i < history->events; i++) {
		uint16_t number = history->event[i].thread;

		if (torn->index_of[number] == UINT16_MAX) {
			torn->thread[torn->threads].number = number;
			torn->index_of[number] = torn->threads++;
		}
	}
	moments = allocate(torn->threads, sizeof(*moments));
	for (uint32_t i = 0; i < history->events; i++)
		moments[thread_of(torn, i)] += history->event[i].kind == HISTORY_CLOCK;
	for (uint32_t i = 0; i < torn->threads; i++)
		torn->thread[i].moment = allocate(moments[i], sizeof(struct moment));
	free(moments);
	for (uint32_t i = 0; i < history->events; i++) {
		const struct history_event *event = &history->event[i];
		struct timeline *thread = &torn->thread[thread_of(torn, i)];

		if (event->kind == HISTORY_CLOCK)
			thread->moment[thread->moments++] =
				(struct moment){ i, (const uint32_t *)(history->data + event->data),
						 event->size / sizeof(uint32_t) };
	}
}

/* What the thread of an event knew then; null: only what it has done itself. */
static const struct moment *moment_of(const struct torn *torn, uint32_t event)
{
	const struct timeline *thread = &torn->thread[thread_of(torn, event)];
	uint32_t low = 0, high = thread->moments;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (thread->moment[middle].event < event)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &thread->moment[low - 1] : NULL;
}

static uint32_t known_to(const struct torn *torn, const struct moment *moment, uint32_t thread)
{
	uint32_t number = torn->thread[thread].number, value = 0;

	if (moment && number < moment->count)
		memcpy(&value, (const char *)moment->known + number * sizeof(value), sizeof(value));
	return value;
}

/* Does the first one happen before the second? */
static bool precedes(const struct torn *torn, uint32_t first, uint32_t second)
{
	uint32_t thread = thread_of(torn, first);

	if (thread == thread_of(torn, second))
		return first < second;
	return first < known_to(torn, moment_of(torn, second), thread);
}

/* Adds all that happens before the event, and the event. */
static void join(const struct torn *torn, uint32_t *known, uint32_t event)
{
	uint32_t own = thread_of(torn, event);
	const struct moment *moment;

	if (event < known[own])
		return; /* and all before it */
	moment = torn->threads > 1 ? moment_of(torn, event) : NULL;
	for (uint32_t i = 0; moment && i < torn->threads; i++) {
		uint32_t value = known_to(torn, moment, i);

		if (value > known[i])
			known[i] = value;
	}
	known[own] = event + 1;
}

/* ---- flushes ---- */

static int by_line(const void *left, const void *right)
{
	const struct flush *a = left, *b = right;

	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	return a->event < b->event ? -1 : a->event > b->event;
}

struct flush_list {
	struct flush *flush;
	uint32_t count, room;
};

static void add_flush(struct flush_list *list, struct flush flush)
{
	if (list->count == list->room) {
		list->room = list->room ? list->room * 2 : 64;
		list->flush = realloc(list->flush, list->room * sizeof(*list->flush));
		if (!list->flush)
			abort();
	}
	list->flush[list->count++] = flush;
}

static void add_range(const struct history *history, struct flush_list *list,
		      const struct history_event *event, uint32_t number, uint32_t done)
{
	uint64_t end = event->address + (event->size ? event->size : 1);

	for (uint64_t line = event->address & -(uint64_t)LINE; line < end; line += LINE) {
		const struct history_line *stored = history_find(history, line);

		if (stored)
			add_flush(list, (struct flush){ stored - history->line, number, done });
		if (event->kind != HISTORY_PERSIST)
			break; /* one line each */
	}
}

static void list_flushes(struct torn *torn)
{
	const struct history *history = torn->history;
	struct flush_list done = { 0 }, *waiting = allocate(torn->threads, sizeof(*waiting));

	for (uint32_t i = 0; i < history->events; i++) {
		const struct history_event *event = &history->event[i];
		struct flush_list *own = &waiting[thread_of(torn, i)];

		switch (event->kind) {
		case HISTORY_FLUSH:
			add_range(history, own, event, i, HISTORY_NEVER);
			break;
		case HISTORY_ORDERED:
		case HISTORY_PERSIST:
			add_range(history, &done, event, i, i);
			break;
		case HISTORY_FENCE:
			for (uint32_t k = 0; k < own->count; k++) {
				own->flush[k].done = i;
				add_flush(&done, own->flush[k]);
			}
			own->count = 0;
			break;
		default:
			break;
		}
	}
	for (uint32_t i = 0; i < torn->threads; i++)
		free(waiting[i].flush);
	free(waiting);
	if (done.count)
		qsort(done.flush, done.count, sizeof(*done.flush), by_line);
	torn->flush = done.flush;
	torn->flushes = done.count;
}

/* The first flush of this line from an event on. */
static uint32_t find_flush(const struct torn *torn, uint32_t line, uint32_t event)
{
	uint32_t low = 0, high = torn->flushes;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct flush *flush = &torn->flush[middle];

		if (flush->line < line || (flush->line == line && flush->event < event))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Was the line written back after the store, in all that the recovery must have had before it? */
static bool is_flushed(const struct torn *torn, const struct history_line *line, uint32_t store)
{
	uint32_t number = line - torn->history->line;

	for (uint32_t i = find_flush(torn, number, store + 1);
	     i < torn->flushes && torn->flush[i].line == number; i++) {
		const struct flush *flush = &torn->flush[i];

		if (flush->done < torn->seen[thread_of(torn, flush->done)] &&
		    precedes(torn, store, flush->event))
			return true;
	}
	return false;
}

/* ---- stores that are somebody else's business ---- */

static void exempt(struct torn *torn, uint32_t event)
{
	torn->exempt[event / 8] |= 1 << event % 8;
}

/* What a constructor sets is valid if the object can be found at all. */
static void exempt_construction(struct torn *torn, const struct history_event *object, uint32_t end)
{
	for (uint32_t i = object->data; i < end; i++) {
		const struct history_event *event = &torn->history->event[i];

		if (event->kind == HISTORY_STORE && event->address >= object->address &&
		    event->address < object->address + object->size)
			exempt(torn, i);
	}
}

struct protected
{
	struct view_range range[RANGES];
	uint32_t count; /* more than there is room for: everything */
};

static bool is_protected(const struct protected *p, const struct history_event *event)
{
	if (p->count > RANGES)
		return true;
	for (uint32_t i = 0; i < p->count; i++)
		if (event->address >= p->range[i].start && event->address < p->range[i].end)
			return true;
	return false;
}

/* A transaction of a prebuilt library that does not commit restores what was stored in it. */
static void list_exempt(struct torn *torn, bool prebuilt)
{
	const struct history *history = torn->history;
	struct protected *protected = allocate(torn->threads, sizeof(*protected));

	torn->exempt = allocate(history->events / 8 + 1, 1);
	for (uint32_t i = 0; i < history->events; i++) {
		const struct history_event *event = &history->event[i];
		struct protected *own = &protected[thread_of(torn, i)];

		if (event->kind == HISTORY_STORE &&
		    (event->flags & HISTORY_GUESSED || (prebuilt && is_protected(own, event))))
			exempt(torn, i); /* only a compiler knows what it may tear */
		else if (event->kind == HISTORY_ALLOC)
			exempt_construction(torn, event, i);
		else if (event->kind == HISTORY_RELEASE)
			own->count = 0;
		if (event->kind != HISTORY_PROTECT || own->count > RANGES)
			continue;
		if (own->count < RANGES)
			own->range[own->count] =
				(struct view_range){ event->address, event->address + event->size };
		own->count++;
	}
	free(protected);
}

static bool is_quiet(const struct history_event *event, unsigned *depth, bool *outside)
{
	switch (event->kind) {
	case HISTORY_QUIET:
		++*depth;
		break;
	case HISTORY_LOUD:
		*depth -= *depth > 0;
		break;
	case HISTORY_INTEREST:
		*outside = false;
		break;
	case HISTORY_DISINTEREST:
		*outside = true;
		break;
	default:
		break;
	}
	return *depth || *outside;
}

/* Where the program says that it cannot crash, what is stored and made persistent is never torn. */
static void exempt_quiet(struct torn *torn)
{
	const struct history *history = torn->history;
	uint32_t *until = allocate(history->events, sizeof(*until)), end = 0;
	bool *quiet = allocate(history->events, sizeof(*quiet)), outside = false;
	unsigned depth = 0;

	for (uint32_t i = 0; i < history->events; i++)
		outside |= history->event[i].kind == HISTORY_INTEREST;
	for (uint32_t i = 0; i < history->events; i++)
		quiet[i] = is_quiet(&history->event[i], &depth, &outside);
	for (uint32_t i = history->events; i-- > 0;) {
		if (!quiet[i])
			end = i;
		until[i] = quiet[i] ? end ? end : history->events : 0;
	}
	for (uint32_t i = 0; i < history->parts; i++)
		if (history->part[i].settled < until[history->part[i].event])
			exempt(torn, history->part[i].event);
	free(until);
	free(quiet);
}

struct torn *torn_new(const struct history *history, bool prebuilt,
		      const struct torn_settings *settings)
{
	struct torn *torn = allocate(1, sizeof(*torn));

	torn->history = history;
	torn->settings = *settings;
	list_threads(torn);
	list_flushes(torn);
	list_exempt(torn, prebuilt);
	exempt_quiet(torn);
	torn->seen = allocate(torn->threads, sizeof(*torn->seen));
	torn->round = 1;
	return torn;
}

void torn_free(struct torn *torn)
{
	if (!torn)
		return;
	for (uint32_t i = 0; i < torn->threads; i++)
		free(torn->thread[i].moment);
	for (uint32_t i = 0; i < torn->lines; i++)
		free(torn->line[i].known);
	free(torn->thread);
	free(torn->index_of);
	free(torn->flush);
	free(torn->exempt);
	free(torn->seen);
	free(torn->line);
	map_free(&torn->line_of);
	map_free(&torn->reported);
	free(torn);
}

/* ---- one recovery ---- */

void torn_begin(struct torn *torn)
{
	memset(torn->seen, 0, torn->threads * sizeof(*torn->seen));
	torn->round++;
}

/* Null if nothing was ever known of it. */
static struct line_state *find_line(const struct torn *torn, uint64_t line)
{
	size_t at = map_get(&torn->line_of, line, torn->lines);

	return at < torn->lines ? &torn->line[at] : NULL;
}

static struct line_state *add_line(struct torn *torn, uint64_t line)
{
	if (torn->lines == torn->line_room) {
		torn->line_room = torn->line_room ? torn->line_room * 2 : 256;
		torn->line = realloc(torn->line, torn->line_room * sizeof(*torn->line));
		if (!torn->line)
			abort();
	}
	map_get_or_put(&torn->line_of, line, torn->lines);
	torn->line[torn->lines] = (struct line_state){
		.known = allocate(torn->threads, sizeof(uint32_t)),
	};
	return &torn->line[torn->lines++];
}

/* The line was written back after this event, and all that happens before it. */
static void note_written_back(struct torn *torn, uint64_t line, uint32_t event)
{
	struct line_state *state = find_line(torn, line);

	if (!state)
		state = add_line(torn, line);
	else if (state->round != torn->round)
		memset(state->known, 0, torn->threads * sizeof(*state->known));
	state->round = torn->round;
	join(torn, state->known, event);
}

/* Or somebody else's. */
static bool is_atomic(const struct history_event *event)
{
	return event->flags & (HISTORY_ATOMIC | HISTORY_SINGLE | HISTORY_NONTEMPORAL |
			       HISTORY_LIBRARY | HISTORY_UNJUDGED);
}

bool torn_is_race(struct torn *torn, uint64_t line, uint32_t part, uint32_t crash)
{
	const struct history *history = torn->history;
	const struct history_part *stored = &history->part[part];
	uint32_t store = stored->event, thread = thread_of(torn, store);
	/* With persistent caches the order of stores counts, whatever their lines. */
	const struct line_state *state = find_line(torn, torn->settings.eadr ? 0 : line);

	if (is_atomic(&history->event[store]) || torn->exempt[store / 8] >> store % 8 & 1)
		return false;
	if (state && state->round == torn->round && store < state->known[thread])
		return false;
	if (torn->settings.eadr)
		return true;
	if (!torn->settings.prefix)
		return stored->settled >= crash;
	if (torn->threads == 1)
		return stored->settled >= torn->seen[0];
	return !is_flushed(torn, history_find(history, line), store);
}

void torn_note_read(struct torn *torn, uint64_t line, uint32_t part)
{
	uint32_t event = torn->history->part[part].event;
	uint8_t flags = torn->history->event[event].flags;

	join(torn, torn->seen, event);
	/* What a prebuilt library stores is trusted. */
	if ((flags & HISTORY_ATOMIC && !(flags & HISTORY_RELAXED)) ||
	    (flags & HISTORY_FOREIGN && flags & HISTORY_LIBRARY))
		note_written_back(torn, torn->settings.eadr ? 0 : line, event);
}

uint32_t torn_threads(const struct torn *torn)
{
	return torn->threads;
}

bool torn_is_simple(const struct torn *torn)
{
	return torn->threads <= 1;
}

bool torn_is_new(struct torn *torn, uint32_t load, uint32_t store, bool benign)
{
	uint64_t pair = (uint64_t)load << 32 | store << 1 | benign;
	size_t known = torn->reported.used;

	return map_get_or_put(&torn->reported, pair, known) == known;
}
