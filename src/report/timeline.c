/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/timeline.h"

#include <stdlib.h>

#include "drive/check.h"
#include "report/output.h"
#include "report/symbols.h"

enum { LINES = 4, EVENTS = 48 /* the last ones */, AFTER = 4 };

struct scene {
	const struct history *history;
	uint64_t line[LINES];
	unsigned lines;
	uint32_t crash;
};

static void add_line(struct scene *scene, uint64_t address)
{
	uint64_t line = address & ~(uint64_t)(HISTORY_LINE_SIZE - 1);

	for (unsigned i = 0; i < scene->lines; i++)
		if (scene->line[i] == line)
			return;
	if (scene->lines < LINES)
		scene->line[scene->lines++] = line;
}

/* The lines of stores that were made with these call stacks. */
static void add_lines_of(struct scene *scene, uint32_t stack)
{
	for (uint32_t i = 0; i < scene->history->events; i++)
		if (scene->history->event[i].kind == HISTORY_STORE &&
		    scene->history->event[i].stack == stack)
			add_line(scene, scene->history->event[i].address);
}

static void find_lines(struct scene *scene, const struct finding *f)
{
	if (f->map)
		for (uint64_t at = f->address; at < f->address + (f->size ? f->size : 1);
		     at += HISTORY_LINE_SIZE)
			add_line(scene, at);
	for (unsigned i = 0; f->witness && i < f->witness->missing; i++)
		add_lines_of(scene, f->witness->lost[i].stack);
}

static bool is_about(const struct scene *scene, const struct history_event *event)
{
	uint64_t size = event->size ? event->size : HISTORY_LINE_SIZE;

	for (unsigned i = 0; i < scene->lines; i++)
		if (history_bytes(scene->line[i], event->address, event->address + size))
			return true;
	return false;
}

/* Threads, one bit each, that have flushed one of the lines, or logged some of it. */
struct pending {
	uint64_t flushed, logged;
};

/* A fence matters to those who have flushed one of the lines before it, and so on. */
static bool matters(const struct scene *scene, uint32_t number, struct pending *pending)
{
	const struct history_event *event = &scene->history->event[number];
	uint64_t thread = 1ull << event->thread % 64;

	switch (event->kind) {
	case HISTORY_STORE:
	case HISTORY_ORDERED:
	case HISTORY_PERSIST:
		return is_about(scene, event);
	case HISTORY_FLUSH:
		if (!is_about(scene, event))
			return false;
		pending->flushed |= thread;
		return true;
	case HISTORY_FENCE:
		if (!(pending->flushed & thread))
			return false;
		pending->flushed &= ~thread;
		return true;
	case HISTORY_PROTECT:
		if (!is_about(scene, event))
			return false;
		pending->logged |= thread;
		return true;
	case HISTORY_RELEASE:
		if (!(pending->logged & thread))
			return false;
		pending->logged &= ~thread;
		return true;
	default:
		return false;
	}
}

/* Since when a store is persistent; HISTORY_NEVER if it is not certain ever to be. */
static uint32_t settled(const struct scene *scene, uint32_t number)
{
	const struct history_event *event = &scene->history->event[number];
	const struct history_line *line =
		history_find(scene->history, event->address & ~(uint64_t)(HISTORY_LINE_SIZE - 1));

	for (uint32_t i = 0; line && i < line->parts; i++)
		if (scene->history->part[line->first + i].event == number)
			return scene->history->part[line->first + i].settled;
	return HISTORY_NEVER;
}

static json_t *event_json(const struct scene *scene, uint32_t number, const struct result *result)
{
	static const char *const names[] = {
		[HISTORY_STORE] = "store",
		[HISTORY_FLUSH] = "flush",
		[HISTORY_ORDERED] = "clflush",
		[HISTORY_FENCE] = "fence",
		[HISTORY_PERSIST] = "persist",
		[HISTORY_PROTECT] = "logged",
		[HISTORY_RELEASE] = "transaction ends",
	};
	const struct history_event *event = &scene->history->event[number];
	uint32_t until = event->kind == HISTORY_STORE ? settled(scene, number) : HISTORY_NEVER;
	const struct frame_info *frame;
	struct site site = { 0 };
	char line[32];

	if (event->stack)
		symbols_resolve(result->session, event->stack, &site);
	frame = site_shown(&site);
	snprintf(line, sizeof(line), "%#lx", event->address & ~(uint64_t)(HISTORY_LINE_SIZE - 1));
	return json_pack(
		"{s:i, s:s, s:i, s:o, s:o, s:b, s:{s:o, s:i, s:o}}", "number", (int)number, "kind",
		names[event->kind], "thread", (int)event->thread, "line",
		event->kind == HISTORY_FENCE || event->kind == HISTORY_RELEASE ? json_null()
									       : json_string(line),
		"settled", until == HISTORY_NEVER ? json_null() : json_integer(until), "certain",
		until != HISTORY_NEVER && until < scene->crash, "site", "file",
		json_text(frame ? frame->file : NULL), "line", frame ? (int)frame->line : 0,
		"function", json_text(frame ? frame->function : NULL));
}

static unsigned versions_of(const struct scene *scene)
{
	static struct history_versions versions;
	struct history_window window = { 0 };

	window.line = scene->lines ? history_find(scene->history, scene->line[0]) : NULL;
	if (!window.line)
		return 1;
	history_advance(scene->history, &window, scene->crash);
	history_versions(scene->history, &window, scene->crash, &versions);
	return versions.count;
}

json_t *timeline_json(const struct finding *f, const struct result *result)
{
	const struct history *history =
		result->check && result->session ? &result->session->executions.history : NULL;
	struct scene scene = { .history = history };
	uint32_t shown[EVENTS + AFTER], count = 0, later = 0;
	struct pending pending = { 0 };
	json_t *events, *lines;

	if (!history || !history->events || result->check->counts.schedules > 1)
		return NULL;
	scene.crash =
		f->witness && f->witness->crash_number ? f->witness->crash_event : history->events;
	find_lines(&scene, f);
	for (uint32_t i = 0; scene.lines && i < history->events && later < AFTER; i++) {
		if (!matters(&scene, i, &pending))
			continue;
		later += i >= scene.crash;
		if (count == EVENTS + AFTER) {
			for (uint32_t k = 1; k < count; k++)
				shown[k - 1] = shown[k];
			count--;
		}
		shown[count++] = i;
	}
	if (!count)
		return NULL;
	events = json_array();
	lines = json_array();
	for (uint32_t i = 0; i < count; i++)
		json_array_append_new(events, event_json(&scene, shown[i], result));
	for (unsigned i = 0; i < scene.lines; i++) {
		char text[32];

		snprintf(text, sizeof(text), "%#lx", scene.line[i]);
		json_array_append_new(lines, json_string(text));
	}
	return json_pack("{s:o, s:o, s:o, s:i}", "lines", lines, "crash",
			 f->witness && f->witness->crash_number ? json_integer(scene.crash)
								: json_null(),
			 "events", events, "versions", (int)versions_of(&scene));
}
