/* SPDX-License-Identifier: BSD-3-Clause */
#include "drive/path.h"

#include <stdlib.h>
#include <string.h>

#include "model/mix.h"

static void *must(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

void path_free(struct path *path)
{
	free(path->step);
	free(path->line);
	free(path->changed);
	free(path->position);
	*path = (struct path){ .known = false };
}

/* What is read outside of memory counts as one line, with an address that none has. */
static uint64_t key_of(const struct read_record *read)
{
	return read->flags & READ_OUTSIDE ? 1 : read->line;
}

static struct path_line *find(const struct path *path, uint64_t line)
{
	uint32_t at = spread(line);

	for (;; at++) {
		struct path_line *entry = &path->line[at & path->lines_mask];

		if (!entry->line || entry->line == line)
			return entry;
	}
}

static void grow_lines(struct path *path)
{
	struct path_line *old = path->line;
	uint32_t count = old ? path->lines_mask + 1 : 0;

	path->lines_mask = count ? count * 2 - 1 : 4095;
	path->line = must(calloc(path->lines_mask + 1ul, sizeof(*path->line)));
	for (uint32_t i = 0; i < count; i++)
		if (old[i].line)
			*find(path, old[i].line) = old[i];
	free(old);
}

void path_cut(struct path *path, uint32_t length)
{
	path->known = false;
	while (path->length > length) {
		const struct path_step *step = &path->step[--path->length];

		find(path, key_of(&step->read))->last = step->before;
	}
}

void path_add(struct path *path, const struct read_record *read, uint32_t node)
{
	struct path_line *entry;

	if (path->length == path->room) {
		path->room = path->room ? path->room * 2 : 1024;
		path->step = must(realloc(path->step, path->room * sizeof(*path->step)));
	}
	if (path->lines_used * 2 >= path->lines_mask)
		grow_lines(path);
	entry = find(path, key_of(read));
	if (!entry->line) {
		entry->line = key_of(read);
		path->lines_used++;
	}
	path->step[path->length] =
		(struct path_step){ .read = *read, .node = node, .before = entry->last };
	entry->last = ++path->length;
}

void path_changed(struct path *path, uint64_t line)
{
	if (!path->line || !find(path, line)->last)
		return; /* it is not read */
	if (path->changes == path->changes_room) {
		path->changes_room = path->changes_room ? path->changes_room * 2 : 64;
		path->changed =
			must(realloc(path->changed, path->changes_room * sizeof(*path->changed)));
	}
	for (uint32_t i = path->changes; i-- > 0 && path->changes - i < 64;)
		if (path->changed[i] == line)
			return;
	path->changed[path->changes++] = line;
}

static int ascending(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void add_positions(struct path *path, uint64_t line, uint32_t *count)
{
	for (uint32_t at = find(path, line)->last; at; at = path->step[at - 1].before) {
		if (*count == path->positions_room) {
			path->positions_room =
				path->positions_room ? path->positions_room * 2 : 256;
			path->position = must(
				realloc(path->position, path->positions_room * sizeof(uint32_t)));
		}
		path->position[(*count)++] = at - 1;
	}
}

uint32_t path_positions(struct path *path, const uint64_t *line, uint32_t lines,
			const uint32_t **position)
{
	uint32_t count = 0, kept = 0;

	if (path->line) {
		add_positions(path, 1, &count);
		for (uint32_t i = 0; i < lines; i++)
			add_positions(path, line[i], &count);
	}
	if (count)
		qsort(path->position, count, sizeof(*path->position), ascending);
	for (uint32_t i = 0; i < count; i++) /* a line may have been named twice */
		if (!kept || path->position[kept - 1] != path->position[i])
			path->position[kept++] = path->position[i];
	*position = path->position;
	return kept;
}
