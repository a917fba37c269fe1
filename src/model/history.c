/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/history.h"

#include <string.h>

#define LINE ((uint64_t)HISTORY_LINE_SIZE)

static uint64_t line_of(uint64_t address)
{
	return address & ~(LINE - 1);
}

static bool is_loose(const struct history *h, const struct history_part *part)
{
	return h->event[part->event].flags & HISTORY_NONTEMPORAL;
}

/* ---- sorting stores into lines ---- */

/* A store is cut into aligned 8-byte pieces. Where the one that starts at `at` ends. */
static uint64_t piece_end(const struct history_event *event, uint64_t at)
{
	uint64_t step = event->flags & HISTORY_SINGLE ? LINE : 8;
	uint64_t next = (at & ~(step - 1)) + step, end = event->address + event->size;

	return next < end ? next : end;
}

static uint32_t count_pieces(const struct history_event *event)
{
	uint64_t end = event->address + event->size;
	uint32_t count = 0;

	if (event->kind == HISTORY_STORE)
		for (uint64_t at = event->address; at < end; at = piece_end(event, at))
			count++;
	return count;
}

struct keyed {
	uint64_t line;
	struct history_part part;
};

/* By line, then by event; stable, bottom up, so that pieces of one event keep their order. */
static void sort_by_line(struct keyed *list, struct keyed *spare, uint32_t count)
{
	for (uint32_t width = 1; width < count; width *= 2) {
		for (uint32_t start = 0; start < count; start += 2 * width) {
			uint32_t middle = start + width < count ? start + width : count;
			uint32_t end = middle + width < count ? middle + width : count;
			uint32_t a = start, b = middle;

			for (uint32_t i = start; i < end; i++)
				spare[i] = a < middle && (b >= end || list[a].line <= list[b].line)
						   ? list[a++]
						   : list[b++];
		}
		memcpy(list, spare, count * sizeof(*list));
	}
}

static void fill_lines(struct history *h, const struct keyed *list)
{
	for (uint32_t i = 0; i < h->parts; i++) {
		if (!i || list[i].line != list[i - 1].line)
			h->line[h->lines++] = (struct history_line){ list[i].line, i, 0, false };
		h->line[h->lines - 1].parts++;
		h->part[i] = list[i].part;
		h->line[h->lines - 1].special |= h->event[list[i].part.event].flags &
						 (HISTORY_NONTEMPORAL | HISTORY_FOREIGN);
	}
}

const struct history_line *history_find(const struct history *h, uint64_t address)
{
	uint64_t wanted = line_of(address);
	uint32_t low = 0, high = h->lines;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (h->line[middle].address < wanted)
			low = middle + 1;
		else
			high = middle;
	}
	return low < h->lines && h->line[low].address == wanted ? &h->line[low] : NULL;
}

/* ---- when each store becomes certain ---- */

/* A flush, or a non-temporal store, that waits for a fence of its thread. */
struct waiting {
	uint32_t event, line;
	uint16_t thread;
};

struct settling {
	struct history *h;
	struct waiting *waiting;
	uint32_t count;
	uint32_t *done; /* of each line, how many parts from its start on are settled */
	bool stored;    /* since the last crash point */
	unsigned quiet; /* how many times */
	bool outside;   /* of all regions of interest */
};

static uint32_t line_index(const struct history *h, uint64_t address)
{
	const struct history_line *line = history_find(h, address);

	return line ? (uint32_t)(line - h->line) : UINT32_MAX;
}

static struct history_part *parts_of(const struct history *h, uint32_t line)
{
	return &h->part[h->line[line].first];
}

/* Skips what needs no further look: histories of one line can be long. */
static uint32_t first_open(struct settling *s, uint32_t line)
{
	const struct history_part *part = parts_of(s->h, line);
	uint32_t *done = &s->done[line];

	while (*done < s->h->line[line].parts && part[*done].settled != HISTORY_NEVER)
		++*done;
	return *done;
}

/* Of which stores: ordinary ones, those and non-temporal ones of this thread, or all. */
enum who { ORDINARY, OF_THREAD, OF_ALL };

/*
 * What was stored to the line before event `until` is persistent from event `now` on: ordinary
 * stores, and the non-temporal ones of the thread (or of all).
 */
static bool settle(struct settling *s, uint32_t line, uint32_t until, uint32_t now, enum who who)
{
	struct history_part *part = parts_of(s->h, line);
	uint16_t thread = s->h->event[now].thread;
	bool any = false;

	for (uint32_t i = first_open(s, line); i < s->h->line[line].parts && part[i].event < until;
	     i++) {
		if (part[i].settled != HISTORY_NEVER ||
		    (is_loose(s->h, &part[i]) && who != OF_ALL &&
		     (who == ORDINARY || s->h->event[part[i].event].thread != thread)))
			continue;
		part[i].settled = now;
		any = true;
	}
	return any;
}

/* A fence completes the thread's own non-temporal store, and nothing else of the line. */
static bool settle_loose(struct settling *s, uint32_t line, uint32_t event, uint32_t now)
{
	struct history_part *part = parts_of(s->h, line);
	bool any = false;

	for (uint32_t i = first_open(s, line); i < s->h->line[line].parts && part[i].event <= event;
	     i++)
		if (part[i].event == event && part[i].settled == HISTORY_NEVER) {
			part[i].settled = now;
			any = true;
		}
	return any;
}

static bool settle_range(struct settling *s, const struct history_event *event, uint32_t now)
{
	uint64_t end = event->address + event->size;
	uint32_t low = 0, high = s->h->lines;
	bool any = false;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (s->h->line[middle].address + LINE <= event->address)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < s->h->lines && s->h->line[low].address < end; low++)
		any |= settle(s, low, now, now, OF_ALL);
	return any;
}

static bool is_dirty(struct settling *s, uint32_t line, uint32_t now)
{
	uint32_t open = first_open(s, line);

	return open < s->h->line[line].parts && parts_of(s->h, line)[open].event < now;
}

static void add_waiting(struct settling *s, uint64_t address, uint16_t thread, uint32_t now)
{
	uint32_t line = line_index(s->h, address);

	if (line != UINT32_MAX && is_dirty(s, line, now + 1))
		s->waiting[s->count++] = (struct waiting){ now, line, thread };
}

static bool fence(struct settling *s, uint16_t thread, uint32_t now)
{
	uint32_t kept = 0;
	bool any = false;

	for (uint32_t i = 0; i < s->count; i++) {
		struct waiting *w = &s->waiting[i];

		if (w->thread != thread) {
			s->waiting[kept++] = *w;
			continue;
		}
		if (s->h->event[w->event].kind == HISTORY_FLUSH)
			any |= settle(s, w->line, w->event, now, OF_THREAD);
		else
			any |= settle_loose(s, w->line, w->event, now);
	}
	s->count = kept;
	return any;
}

/* A crash point before an event that makes something certain, if something was stored since. */
static void note_crash_point(struct settling *s, uint32_t now, bool shrinks)
{
	if (!shrinks || !s->stored || s->quiet || s->outside)
		return;
	s->h->crash[s->h->crashes++] = now;
	s->stored = false;
}

static void take_event(struct settling *s, uint32_t now)
{
	const struct history_event *event = &s->h->event[now];
	uint32_t line;
	bool shrinks = false;

	switch (event->kind) {
	case HISTORY_STORE:
		/* An instantly durable store is a step of its own: the state before it counts. */
		note_crash_point(s, now,
				 (event->flags & (HISTORY_FOREIGN | HISTORY_JOINED)) ==
					 HISTORY_FOREIGN);
		s->stored = true;
		if (event->flags & HISTORY_NONTEMPORAL)
			for (uint64_t at = line_of(event->address);
			     at < event->address + event->size; at += LINE)
				add_waiting(s, at, event->thread, now);
		return;
	case HISTORY_FLUSH:
		add_waiting(s, event->address, event->thread, now);
		return;
	case HISTORY_ORDERED:
		line = line_index(s->h, event->address);
		shrinks = line != UINT32_MAX && settle(s, line, now, now, ORDINARY);
		break;
	case HISTORY_FENCE:
		shrinks = fence(s, event->thread, now);
		break;
	case HISTORY_PERSIST:
		shrinks = settle_range(s, event, now);
		break;
	case HISTORY_WORLD:
		note_crash_point(s, now, !(event->flags & HISTORY_JOINED));
		s->stored = true;
		return;
	case HISTORY_CRASH:
		s->stored = true;
		note_crash_point(s, now, true);
		s->stored = true;
		return;
	case HISTORY_INTEREST:
		s->outside = false;
		return;
	case HISTORY_DISINTEREST:
		s->outside = true;
		return;
	case HISTORY_QUIET:
		s->quiet++;
		return;
	case HISTORY_LOUD:
		s->quiet -= s->quiet > 0;
		return;
	default:
		return;
	}
	note_crash_point(s, now, shrinks);
}

/* ---- building ---- */

static void *carve(char **memory, size_t size)
{
	void *result = *memory;

	*memory += (size + 15) & ~(size_t)15;
	return result;
}

static void reverse(struct keyed *list, uint32_t count)
{
	for (uint32_t i = 0; i < count / 2; i++) {
		struct keyed other = list[count - 1 - i];

		list[count - 1 - i] = list[i];
		list[i] = other;
	}
}

/* Cuts the stores into pieces, in the order of their events. */
static void cut(struct history *h, struct keyed *list, bool descending)
{
	for (uint32_t i = 0; i < h->events; i++) {
		const struct history_event *event = &h->event[i];
		uint64_t end = event->address + event->size;
		uint32_t first = h->parts;

		if (event->kind != HISTORY_STORE)
			continue;
		for (uint64_t at = event->address; at < end; at = piece_end(event, at)) {
			uint64_t line = line_of(at);

			list[h->parts].line = line;
			list[h->parts++].part = (struct history_part){
				.event = i,
				.settled = event->flags & HISTORY_FOREIGN ? i : HISTORY_NEVER,
				.bytes = history_bytes(line, at, piece_end(event, at)),
			};
		}
		if (descending)
			reverse(list + first, h->parts - first);
	}
}

bool history_build(struct history *h, const struct history_event *event, uint32_t events,
		   const unsigned char *data, bool descending, void *(*allocate)(size_t size))
{
	struct settling settling = { .h = h };
	size_t parts = 0, flushes = 0;
	struct keyed *list, *spare;
	char *memory;

	*h = (struct history){ .event = event, .events = events, .data = data };
	for (uint32_t i = 0; i < events; i++) {
		parts += count_pieces(&event[i]);
		flushes += event[i].kind == HISTORY_FLUSH;
		settling.outside |= event[i].kind == HISTORY_INTEREST;
	}
	h->memory = memory = allocate(
		parts * (sizeof(*h->part) + sizeof(*h->line) + 2 * sizeof(*list) +
			 sizeof(*settling.done) + sizeof(*settling.waiting)) +
		(events + 1ul) * sizeof(*h->crash) + flushes * sizeof(*settling.waiting) + 256);
	if (!memory)
		return false;
	h->part = carve(&memory, parts * sizeof(*h->part));
	h->line = carve(&memory, parts * sizeof(*h->line));
	h->crash = carve(&memory, (events + 1ul) * sizeof(*h->crash));
	list = carve(&memory, parts * sizeof(*list));
	spare = carve(&memory, parts * sizeof(*spare));
	settling.done = carve(&memory, parts * sizeof(*settling.done));
	settling.waiting = carve(&memory, (parts + flushes) * sizeof(*settling.waiting));
	cut(h, list, descending);
	sort_by_line(list, spare, h->parts);
	fill_lines(h, list);
	memset(settling.done, 0, h->lines * sizeof(*settling.done));
	for (uint32_t i = 0; i < events; i++)
		take_event(&settling, i);
	h->crash[h->crashes++] = events;
	return true;
}

/* ---- what one line can hold ---- */

enum certainty { ABSENT, UNCERTAIN, CERTAIN };

static enum certainty certainty(const struct history_part *part, uint32_t crash)
{
	if (part->event >= crash)
		return ABSENT;
	return part->settled < crash ? CERTAIN : UNCERTAIN;
}

void history_advance(const struct history *h, struct history_window *w, uint32_t crash)
{
	const struct history_part *part = &h->part[w->line->first];

	while (w->from < w->line->parts && certainty(&part[w->from], crash) == CERTAIN)
		w->from++;
	if (w->to < w->from)
		w->to = w->from;
	while (w->to < w->line->parts && part[w->to].event < crash)
		w->to++;
}

static void apply(const struct history *h, const struct history_line *line,
		  const struct history_part *part, unsigned char content[HISTORY_LINE_SIZE])
{
	const struct history_event *event = &h->event[part->event];

	for (uint64_t bytes = part->bytes; bytes; bytes &= bytes - 1) {
		unsigned at = __builtin_ctzll(bytes);

		content[at] = h->data[event->data + line->address + at - event->address];
	}
}

void history_apply(const struct history *h, const struct history_line *line, uint32_t first,
		   uint32_t last, unsigned char content[HISTORY_LINE_SIZE])
{
	for (uint32_t i = first; i < last; i++)
		apply(h, line, &h->part[line->first + i], content);
}

void history_versions(const struct history *h, const struct history_window *window, uint32_t crash,
		      struct history_versions *v)
{
	uint64_t all;

	v->window = *window;
	v->crash = crash;
	v->ordinary = v->loose = v->count = 0;
	for (uint32_t i = window->from; i < window->to; i++) {
		const struct history_part *part = &h->part[window->line->first + i];

		if (certainty(part, crash) != UNCERTAIN)
			continue;
		if (is_loose(h, part))
			v->loose++;
		else
			v->ordinary++;
	}
	all = v->loose < HISTORY_LOOSE ? ((uint64_t)v->ordinary + 1) << v->loose : UINT64_MAX;
	v->cut = all > HISTORY_VERSIONS;
	if (v->cut) {
		v->version[v->count++] = (struct history_version){ 0, 0 };
		v->version[v->count++] = (struct history_version){ v->ordinary, UINT32_MAX };
		return;
	}
	for (uint32_t loose = 0; loose < 1u << v->loose; loose++)
		for (uint32_t stores = 0; stores <= v->ordinary; stores++)
			v->version[v->count++] = (struct history_version){ stores, loose };
}

/* A walk over the parts that a version has, in order, from the window's start on. */
struct walk {
	uint32_t next, ordinary, loose;
};

static struct walk start_walk(const struct history_versions *v)
{
	return (struct walk){ .next = v->window.from };
}

/* The index of the next part; HISTORY_NEVER at the end. */
static uint32_t next_part(const struct history *h, const struct history_versions *v,
			  const struct history_version *version, struct walk *walk)
{
	while (walk->next < v->window.to) {
		uint32_t index = walk->next++;
		const struct history_part *part = &h->part[v->window.line->first + index];
		bool there;

		if (certainty(part, v->crash) == CERTAIN)
			return index;
		if (is_loose(h, part))
			there = walk->loose < 32 ? version->loose >> walk->loose & 1
						 : version->loose != 0;
		else
			there = walk->ordinary < version->stores;
		if (is_loose(h, part))
			walk->loose++;
		else
			walk->ordinary++;
		if (there)
			return index;
	}
	return HISTORY_NEVER;
}

void history_content(const struct history *h, const struct history_versions *v, uint32_t version,
		     unsigned char content[HISTORY_LINE_SIZE])
{
	const struct history_line *line = v->window.line;
	struct walk walk = start_walk(v);
	uint32_t index;

	while ((index = next_part(h, v, &v->version[version], &walk)) != HISTORY_NEVER)
		apply(h, line, &h->part[line->first + index], content);
}

void history_writers(const struct history *h, const struct history_versions *v, uint32_t version,
		     uint32_t writer[HISTORY_LINE_SIZE])
{
	const struct history_line *line = v->window.line;
	struct walk walk = start_walk(v);
	uint32_t index;

	for (unsigned i = 0; i < HISTORY_LINE_SIZE; i++)
		writer[i] = HISTORY_NEVER;
	while ((index = next_part(h, v, &v->version[version], &walk)) != HISTORY_NEVER)
		for (uint64_t bytes = h->part[line->first + index].bytes; bytes; bytes &= bytes - 1)
			writer[__builtin_ctzll(bytes)] = index;
}

bool history_has(const struct history *h, const struct history_versions *v,
		 const struct history_version *version, uint32_t part)
{
	struct walk walk = start_walk(v);
	uint32_t index;

	do
		index = next_part(h, v, version, &walk);
	while (index < part);
	return index == part;
}

uint32_t history_last_writer(const struct history *h, const struct history_line *line, uint32_t end,
			     unsigned byte)
{
	while (end-- > 0)
		if (h->part[line->first + end].bytes >> byte & 1)
			return end;
	return HISTORY_NEVER;
}

/* Is there no fence behind the flush at all, or something stored before it comes? */
static bool needs_fence(const struct history *history, const struct history_part *part,
			uint32_t flush)
{
	if (part->settled == HISTORY_NEVER)
		return true;
	for (uint32_t i = flush + 1; i < part->settled; i++)
		if (history->event[i].kind == HISTORY_STORE &&
		    history->event[i].thread == history->event[flush].thread)
			return true;
	return false;
}

enum history_reason history_why_uncertain(const struct history *history, uint64_t line,
					  const struct history_part *part, uint32_t crash,
					  uint32_t *flush)
{
	*flush = HISTORY_NEVER;
	if (history->event[part->event].flags & HISTORY_NONTEMPORAL)
		return HISTORY_NOT_FENCED;
	for (uint32_t i = part->event + 1; i < history->events; i++) {
		const struct history_event *event = &history->event[i];
		bool flushes = event->kind == HISTORY_FLUSH || event->kind == HISTORY_ORDERED ||
			       event->kind == HISTORY_PERSIST;

		/* Flushes are of whole lines, and of one at least. */
		if (!flushes || event->address >= line + HISTORY_LINE_SIZE ||
		    (event->address & -(uint64_t)HISTORY_LINE_SIZE) + event->size + !event->size <=
			    line)
			continue;
		*flush = i;
		return i < crash && needs_fence(history, part, i) ? HISTORY_NOT_FENCED
								  : HISTORY_FLUSHED_LATER;
	}
	return HISTORY_NOT_FLUSHED;
}
