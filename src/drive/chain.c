/* SPDX-License-Identifier: BSD-3-Clause */
#include "drive/chain.h"

#include <stdlib.h>
#include <string.h>

#include "report/atomicity.h"

enum { LINE = HISTORY_LINE_SIZE, CONTENTS = 255 };

/* ---- what a recovery did ---- */

static void *copy(const void *from, size_t size)
{
	void *to = malloc(size + 1);

	if (!to)
		abort();
	return memcpy(to, from, size);
}

struct leaf *leaf_new(const struct session *session, const struct execution *execution,
		      bool descending)
{
	const struct event_log *log = &execution->log;
	struct history_event *event;
	struct leaf *leaf;
	bool stores = false;

	for (uint32_t i = 0; i < log->events && !stores; i++)
		stores = log->event[i].kind == HISTORY_STORE;
	if (!stores)
		return NULL;
	leaf = calloc(1, sizeof(*leaf));
	if (!leaf)
		abort();
	leaf->reads = execution->reads;
	leaf->read = copy(execution->read, leaf->reads * sizeof(*leaf->read));
	leaf->reads_before = copy(log->reads, log->events * sizeof(*log->reads));
	event = copy(log->event, log->events * sizeof(*event));
	atomicity_settle(session, event, log->events);
	if (!history_build(&leaf->history, event, log->events, copy(log->data, log->bytes),
			   descending, malloc))
		abort();
	return leaf;
}

void leaf_free(struct leaf *leaf)
{
	free((void *)leaf->history.event);
	free((void *)leaf->history.data);
	free(leaf->history.memory);
	torn_free(leaf->torn);
	free(leaf->reads_before);
	free(leaf->read);
	free(leaf);
}

/* ---- lines ---- */

/* The contents of a line, each of them once. */
struct contents {
	uint32_t count;
	bool cut;
	unsigned char content[CONTENTS][LINE];
};

static void add_content(struct contents *list, const unsigned char *content)
{
	for (uint32_t i = 0; i < list->count; i++)
		if (memcmp(list->content[i], content, LINE) == 0)
			return;
	if (list->count == CONTENTS)
		list->cut = true;
	else
		memcpy(list->content[list->count++], content, LINE);
}

static bool is_alive(const struct view_state *state, uint32_t version)
{
	return !state->started || state->alive[version / 64] >> version % 64 & 1;
}

/* What the crash before has left there, as far as the recovery knows. */
static void list_before(const struct view *view, const struct image *image, uint64_t address,
			struct contents *list)
{
	const struct view_line *line = view_find(view->crash, address);
	const unsigned char *certain = image_content(image, address);
	struct history_versions versions;
	unsigned char content[LINE];

	list->count = 0;
	list->cut = false;
	if (!line) {
		if (certain)
			add_content(list, certain);
		return;
	}
	view_versions(view->history, view->crash, line, &versions);
	list->cut = versions.cut;
	for (uint32_t v = 0; v < versions.count; v++) {
		if (!is_alive(&view->state[line - view->crash->line], v))
			continue;
		view_content(view, line, v, certain, content);
		add_content(list, content);
	}
}

/* Each of these with what the recovery may have made of it. */
static void list_after(const struct leaf *leaf, uint32_t crash, uint64_t address,
		       const struct contents *before, struct contents *after)
{
	const struct history *history = &leaf->history;
	struct history_window window = { .line = history_find(history, address) };
	struct history_versions versions;

	after->count = 0;
	after->cut = before->cut;
	if (!window.line || window.line->address != address) {
		*after = *before;
		return;
	}
	history_advance(history, &window, crash);
	history_versions(history, &window, crash, &versions);
	after->cut |= versions.cut;
	for (uint32_t b = 0; b < before->count; b++)
		for (uint32_t v = 0; v < versions.count; v++) {
			unsigned char content[LINE];

			memcpy(content, before->content[b], LINE);
			history_apply(history, window.line, 0, window.from, content);
			history_content(history, &versions, v, content);
			add_content(after, content);
		}
}

static void add_line(struct chain_state *state, uint64_t address, const struct contents *list)
{
	size_t contents = state->contents + (size_t)list->count;

	state->line = realloc(state->line, (state->lines + 1ul) * sizeof(*state->line));
	state->content = realloc(state->content, contents * sizeof(*state->content));
	if (!state->line || !state->content)
		abort();
	memcpy(state->content[state->contents], list->content, list->count * LINE);
	state->line[state->lines++] = (struct view_line){
		.address = address,
		.contents = list->count,
		.content = state->contents,
	};
	state->contents += list->count;
	state->cut |= list->cut;
}

static void index_lines(struct chain_state *state)
{
	for (state->mask = 1; state->mask + 1 < 2 * state->lines;)
		state->mask = state->mask * 2 + 1;
	state->index = calloc(state->mask + 1ul, sizeof(*state->index));
	if (!state->index)
		abort();
	view_index(state->line, state->lines, state->index, state->mask);
}

struct chain_state *chain_fixed(const struct view *view, const struct image *image,
				const uint32_t *version)
{
	struct chain_state *state = calloc(1, sizeof(*state));
	struct contents *one = malloc(sizeof(*one));

	if (!state || !one)
		abort();
	state->stage = 1;
	one->count = 1;
	one->cut = false;
	for (uint32_t i = 0; i < view->crash->lines; i++) {
		const struct view_line *line = &view->crash->line[i];

		view_content(view, line, version[i], image_content(image, line->address),
			     one->content[0]);
		add_line(state, line->address, one);
	}
	index_lines(state);
	free(one);
	return state;
}

struct chain_state *chain_new(struct leaf *leaf, uint32_t crash, struct view *view,
			      const struct image *image)
{
	const struct history *history = &leaf->history;
	uint32_t reads = crash < history->events ? leaf->reads_before[crash] : leaf->reads;
	struct chain_state *state = calloc(1, sizeof(*state));
	struct contents *before = malloc(sizeof(*before)), *after = malloc(sizeof(*after));

	if (!state || !before || !after)
		abort();
	state->leaf = leaf;
	state->crash = crash;
	for (uint32_t i = 0; i < reads; i++) {
		const struct read_record *read = &leaf->read[i];
		const unsigned char *certain = image_content(image, read->line);
		struct view_read scratch;

		if (!(read->flags & READ_OUTSIDE) && certain) {
			view->verification = read->flags >> READ_VERIFICATION_SHIFT;
			view_read(view, read->line, read->bytes, certain, &scratch);
		}
	}
	for (uint32_t i = 0; i < view->crash->lines; i++) {
		uint64_t address = view->crash->line[i].address;

		list_before(view, image, address, before);
		list_after(leaf, crash, address, before, after);
		add_line(state, address, after);
	}
	for (uint32_t i = 0; i < history->lines; i++) {
		uint64_t address = history->line[i].address;

		if (view_find(view->crash, address) ||
		    history->part[history->line[i].first].event >= crash)
			continue;
		list_before(view, image, address, before);
		list_after(leaf, crash, address, before, after);
		if (after->count)
			add_line(state, address, after);
	}
	index_lines(state);
	free(before);
	free(after);
	return state;
}

void chain_free(struct chain_state *state)
{
	free(state->line);
	free(state->index);
	free(state->content);
	free(state);
}

/* Behind what the crash of the program itself has there. */
void chain_apply(const struct chain_state *state, struct execution *execution)
{
	struct view_line *line = execution->line + execution->program_lines;
	uint32_t *index = execution->index + execution->program_index;

	if (state->lines) {
		memcpy(line, state->line, state->lines * sizeof(*line));
		memcpy(execution->content, state->content,
		       state->contents * sizeof(*state->content));
	}
	memcpy(index, state->index, (state->mask + 1ul) * sizeof(*index));
	execution->crash = (struct view_crash){
		.lines = state->lines,
		.line = line,
		.content = (const unsigned char(*)[LINE])execution->content,
		.index = index,
		.mask = state->mask,
	};
}
