/* SPDX-License-Identifier: BSD-3-Clause */
#include "drive/image.h"
#include "session/sparse.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE = HISTORY_LINE_SIZE, PAGE = 4096 };

/* ---- files ---- */

static uint64_t inode_of(int fd)
{
	struct stat status;

	return fstat(fd, &status) == 0 ? status.st_ino : 0;
}

static bool set_size(struct image_file *file, uint64_t size)
{
	uint64_t room = (size + PAGE - 1) & -(uint64_t)PAGE;

	if (ftruncate(file->fd, size) < 0)
		return false;
	file->size = size;
	if (room <= file->mapped)
		return true;
	if (file->memory)
		munmap(file->memory, file->mapped);
	file->memory = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED, file->fd, 0);
	if (file->memory == MAP_FAILED) {
		file->memory = NULL;
		file->mapped = 0;
		return false;
	}
	file->mapped = room;
	return true;
}

static bool new_file(struct image *image, uint32_t index)
{
	struct image_file *file = &image->file[index];

	if (file->memory)
		munmap(file->memory, file->mapped);
	if (file->fd > 0)
		close(file->fd);
	*file = (struct image_file){ .fd = memfd_create("perdure-image", MFD_CLOEXEC) };
	if (file->fd < 0)
		return false;
	image->world.backing[index] = (struct world_backing){
		.fd = file->fd,
		.inode = inode_of(file->fd),
		.shared = true,
		.state = ++image->changes,
	};
	return true;
}

static struct world_entry *entry_of(struct world *world, const char *path, bool add)
{
	for (uint32_t i = 0; i < world->entries; i++)
		if (strcmp(world->entry[i].path, path) == 0)
			return &world->entry[i];
	if (!add || world->entries == WORLD_ENTRIES)
		return NULL;
	strcpy(world->entry[world->entries].path, path);
	return &world->entry[world->entries++];
}

static void set_entry(struct image *image, const char *path, enum world_kind kind, uint32_t file)
{
	struct world_entry *entry = entry_of(&image->world, path, true);

	if (entry) {
		entry->kind = kind;
		entry->file = file;
	}
}

/* Files that were there before the run. */
static bool take_original(struct image *image, uint32_t index)
{
	const struct world_file *original = &image->session->executions.file[index];
	struct image_file *file = &image->file[index];
	struct stat status;
	int fd = open(original->path, O_RDONLY | O_CLOEXEC);
	bool taken;

	if (fd < 0)
		return false;
	taken = fstat(fd, &status) == 0 && new_file(image, index) &&
		set_size(file, status.st_size) && sparse_copy(fd, file->fd, status.st_size);
	close(fd);
	if (taken)
		set_entry(image, original->path, WORLD_FILE, index);
	return taken;
}

void image_end(struct image *image)
{
	for (uint32_t i = 0; i < WORLD_FILES; i++) {
		struct image_file *file = &image->file[i];

		if (file->memory)
			munmap(file->memory, file->mapped);
		if (file->fd > 0)
			close(file->fd);
	}
	free(image->line);
	free(image->open);
	free(image->touched);
	free(image->protected);
	*image = (struct image){ 0 };
}

bool image_start(struct image *image, struct session *session, struct execution *execution)
{
	const struct history *history = &session->executions.history;

	*image = (struct image){ .session = session, .execution = execution };
	image->line = calloc(history->lines + 1ul, sizeof(*image->line));
	image->open = calloc(history->lines + 1ul, sizeof(*image->open));
	if (!image->line || !image->open)
		return false;
	for (uint32_t i = 0; i < session->executions.files; i++)
		if (session->executions.file[i].existed && !take_original(image, i))
			return false;
	return true;
}

static bool apply_change(struct image *image, const struct world_change *change)
{
	struct image_file *file = &image->file[change->file];
	const unsigned char *bytes = (const unsigned char *)(change + 1);
	uint64_t end = change->offset + change->size;

	switch (change->operation) {
	case WORLD_CREATE:
		set_entry(image, change->path, WORLD_FILE, change->file);
		return new_file(image, change->file);
	case WORLD_SIZE:
		image->world.backing[change->file].state = ++image->changes;
		return set_size(file, change->size);
	case WORLD_WRITE:
		image->world.backing[change->file].state = ++image->changes;
		if (end > file->size && !set_size(file, end))
			return false;
		memcpy(file->memory + change->offset, bytes, change->size);
		return true;
	case WORLD_RENAME:
		set_entry(image, change->path, WORLD_ABSENT, 0);
		set_entry(image, change->to, WORLD_FILE, change->file);
		return true;
	case WORLD_UNLINK:
		set_entry(image, change->path, WORLD_ABSENT, 0);
		return true;
	default: /* WORLD_MKDIR */
		set_entry(image, change->path, WORLD_DIRECTORY, 0);
		return true;
	}
}

/* ---- memory ---- */

static unsigned char *content_at(const struct image *image, uint64_t address)
{
	const struct session_file *slot = session_file_at(image->session, address);
	const struct image_file *file = slot && slot->world ? &image->file[slot->world - 1] : NULL;
	uint64_t offset = file ? address - slot->base + slot->first : 0;

	uint64_t end = file ? (file->size + PAGE - 1) & -(uint64_t)PAGE : 0;

	return file && file->memory && offset + LINE <= end ? file->memory + offset : NULL;
}

const unsigned char *image_content(const struct image *image, uint64_t address)
{
	return content_at(image, address & -(uint64_t)LINE);
}

static void open_lines(struct image *image, const struct history_event *event)
{
	const struct history *history = &image->session->executions.history;
	uint64_t end = event->address + event->size;
	const struct history_line *line = history_find(history, event->address);

	for (; line && line < history->line + history->lines && line->address < end; line++) {
		uint32_t index = line - history->line;

		if (!image->line[index].open)
			image->open[image->opens++] = index;
		image->line[index].open = true;
	}
}

/* What has become certain goes into the image. */
static void settle(struct image *image, uint32_t index, uint32_t crash)
{
	const struct history *history = &image->session->executions.history;
	const struct history_line *line = &history->line[index];
	struct image_line *state = &image->line[index];
	struct history_window window = { line, state->from, state->to };
	unsigned char *content;

	history_advance(history, &window, crash);
	content = window.from > state->from ? content_at(image, line->address) : NULL;
	if (content)
		history_apply(history, line, state->from, window.from, content);
	for (uint32_t i = state->from; i < window.from; i++)
		state->certain |= history->part[line->first + i].bytes;
	state->from = window.from;
	state->to = window.to;
}

static void list_uncertain(struct image *image)
{
	const struct history *history = &image->session->executions.history;
	struct execution *execution = image->execution;
	uint32_t size = 16;

	for (uint32_t i = 0; i < image->opens; i++) {
		uint32_t index = image->open[i];

		execution->line[i] = (struct view_line){
			.address = history->line[index].address,
			.certain = image->line[index].certain,
			.line = index,
			.from = image->line[index].from,
			.to = image->line[index].to,
		};
	}
	while (size < 2 * image->opens)
		size *= 2;
	memset(execution->index, 0, size * sizeof(*execution->index));
	view_index(execution->line, image->opens, execution->index, size - 1);
	execution->program_lines = image->opens;
	execution->program_index = size;
	execution->crash = (struct view_crash){
		.crash = image->crash,
		.lines = image->opens,
		.line = execution->line,
		.index = execution->index,
		.mask = size - 1,
	};
}

static void touch(struct image *image, uint64_t line)
{
	if (image->touches == image->touched_room) {
		image->touched_room = image->touched_room ? image->touched_room * 2 : 256;
		image->touched =
			realloc(image->touched, image->touched_room * sizeof(*image->touched));
		if (!image->touched)
			abort();
	}
	image->touched[image->touches++] = line;
}

static void touch_object(struct image *image, const struct history_event *event)
{
	for (uint64_t line = event->address & -(uint64_t)LINE; line < event->address + event->size;
	     line += LINE)
		touch(image, line);
}

static void protect(struct image *image, const struct history_event *event)
{
	if (image->protecteds == image->protected_room) {
		image->protected_room = image->protected_room ? image->protected_room * 2 : 64;
		image->protected = realloc(image->protected,
					   image->protected_room * sizeof(*image->protected));
		if (!image->protected)
			abort();
	}
	image->protected[image->protecteds++] =
		(struct cross_failure_protected){ event->thread, event->address,
						  event->address + event->size };
}

static void release(struct image *image, uint32_t thread)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < image->protecteds; i++)
		if (image->protected[i].thread != thread)
			image->protected[kept++] = image->protected[i];
	image->protecteds = kept;
}

bool image_advance(struct image *image, uint32_t crash)
{
	const struct history *history = &image->session->executions.history;
	uint32_t kept = 0;

	image->touches = 0;
	for (uint32_t i = image->crash; i < crash; i++) {
		const struct history_event *event = &history->event[i];

		image->stored |= event->kind == HISTORY_STORE;
		if (event->kind == HISTORY_STORE && event->size)
			open_lines(image, event);
		else if (event->kind == HISTORY_PROTECT && image->session->executions.prebuilt)
			protect(image, event);
		else if (event->kind == HISTORY_RELEASE)
			release(image, event->thread);
		else if (event->kind == HISTORY_ALLOC)
			touch_object(image, event);
		else if (event->kind == HISTORY_WORLD &&
			 !apply_change(image, (const void *)(history->data + event->data)))
			return false;
	}
	image->crash = crash;
	for (uint32_t i = 0; i < image->opens; i++) {
		uint32_t index = image->open[i];

		touch(image, history->line[index].address);
		settle(image, index, crash);
		if (image->line[index].from < image->line[index].to)
			image->open[kept++] = index;
		else
			image->line[index].open = false;
	}
	image->opens = kept;
	list_uncertain(image);
	return true;
}

/* ---- executions ---- */

static void fill_in_versions(const struct image *image, uint32_t file, int fd)
{
	const struct history *history = &image->session->executions.history;
	const struct execution *execution = image->execution;
	struct history_versions versions;

	for (uint32_t i = 0; i < execution->crash.lines; i++) {
		const struct view_line *line = &execution->crash.line[i];
		const struct session_file *slot = session_file_at(image->session, line->address);
		const unsigned char *certain = image_content(image, line->address);
		unsigned char content[LINE];
		uint64_t offset;

		if (!slot || slot->world != file + 1 || !certain)
			continue;
		memcpy(content, certain, LINE);
		view_versions(history, &execution->crash, line, &versions);
		history_content(history, &versions, view_default(&versions, execution->latest),
				content);
		offset = line->address - slot->base + slot->first;
		if (pwrite(fd, content, LINE, offset) != LINE)
			return;
	}
}

/* A whole image, for executions whose reads are not seen. */
static bool copy_whole(struct image *image, uint32_t file)
{
	struct execution *execution = image->execution;
	uint32_t spare = execution->spare_used;
	int fd = execution->spare[spare];

	if (spare == execution->spares || ftruncate(fd, image->file[file].size) < 0 ||
	    !sparse_copy(image->file[file].fd, fd, image->file[file].size))
		return false;
	fill_in_versions(image, file, fd);
	if (ftruncate(fd, image->file[file].size) < 0)
		return false;
	execution->spare_used++;
	execution->world.backing[file] =
		(struct world_backing){ .fd = fd, .inode = execution->spare_inode[spare] };
	return true;
}

bool image_save(struct image *image, uint32_t file, int fd, bool latest)
{
	if (ftruncate(fd, image->file[file].size) < 0 ||
	    !sparse_copy(image->file[file].fd, fd, image->file[file].size))
		return false;
	image->execution->latest = latest;
	fill_in_versions(image, file, fd);
	return ftruncate(fd, image->file[file].size) == 0;
}

bool image_prepare(struct image *image)
{
	struct execution *execution = image->execution;

	for (uint32_t i = 0; i < execution->spare_used; i++)
		if (ftruncate(execution->spare[i], 0) < 0)
			return false;
	execution->spare_used = 0;
	execution->world.entries = image->world.entries;
	memcpy(execution->world.entry, image->world.entry,
	       image->world.entries * sizeof(*image->world.entry));
	memcpy(execution->world.backing, image->world.backing, sizeof(image->world.backing));
	for (uint32_t i = 0; i < WORLD_FILES && !execution->lazy; i++)
		if (image->world.backing[i].fd && image->session->executions.file[i].pm &&
		    !copy_whole(image, i))
			return false;
	execution->reads = execution->reads_lost = 0;
	execution->inputs = execution->listening = 0;
	execution->signal = execution->signal_stack = execution->deadlocked = 0;
	execution->log.events = execution->log.full = 0;
	execution->log.bytes = 0;
	return true;
}

bool image_was_stored(const struct image *image, const struct read_record *read)
{
	const struct history *history = &image->session->executions.history;
	const struct history_line *line = history_find(history, read->line);

	return line && image->line[line - history->line].certain & read->bytes;
}

uint64_t image_asked(const struct image *image, uint64_t what)
{
	for (uint32_t i = 0; i < image->world.entries; i++) {
		const struct world_entry *entry = &image->world.entry[i];

		if (execution_hash_text(entry->path) != what)
			continue;
		return entry->kind == WORLD_FILE ? image->world.backing[entry->file].state + 4
						 : entry->kind + 1;
	}
	return 0;
}
