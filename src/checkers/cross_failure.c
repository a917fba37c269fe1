/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cross-failure-race: a byte that may come from two stores, after all that was read before.
 * cross-failure-semantic: a byte that a commit variable says is not valid.
 *
 * Cannot see: what a recovery does with the bytes; whether a value is right.
 */
#include "checkers/cross_failure.h"

#include <stdlib.h>
#include <string.h>

#include "model/mix.h"

enum { LINE = HISTORY_LINE_SIZE, OBJECT_LINES_MAX = 4096 };

/* ---- objects that were allocated ---- */

/* For each line the allocations that touch it, newest first. */
struct object_entry {
	uint32_t event, next;
};

struct cross_failure_objects {
	uint64_t *line;
	uint32_t *head;
	uint32_t mask, used;
	struct object_entry *entry;
};

static uint32_t *find_head(struct cross_failure_objects *objects, uint64_t line)
{
	uint32_t at = spread(line / LINE);

	for (;; at++) {
		uint32_t slot = at & objects->mask;

		if (objects->line[slot] == line)
			return &objects->head[slot];
		if (!objects->line[slot]) {
			objects->line[slot] = line;
			return &objects->head[slot];
		}
	}
}

static uint64_t lines_of(const struct history_event *event)
{
	return (event->address + event->size + LINE - 1) / LINE - event->address / LINE;
}

static bool is_object(const struct history_event *event)
{
	return event->kind == HISTORY_ALLOC && event->size && lines_of(event) <= OBJECT_LINES_MAX;
}

static struct cross_failure_objects *list_objects(const struct history *history)
{
	struct cross_failure_objects *objects = calloc(1, sizeof(*objects));
	uint64_t count = 0, size = 1024;

	if (!objects)
		return NULL;
	for (uint32_t i = 0; i < history->events; i++)
		if (is_object(&history->event[i]))
			count += lines_of(&history->event[i]);
	while (size < count * 2)
		size *= 2;
	objects->mask = size - 1;
	objects->line = calloc(size, sizeof(*objects->line));
	objects->head = calloc(size, sizeof(*objects->head));
	objects->entry = calloc(count + 1, sizeof(*objects->entry));
	if (!objects->line || !objects->head || !objects->entry)
		return NULL;
	for (uint32_t i = 0; i < history->events; i++) {
		const struct history_event *event = &history->event[i];

		if (!is_object(event))
			continue;
		for (uint64_t line = event->address & -(uint64_t)LINE;
		     line < event->address + event->size; line += LINE) {
			uint32_t *head = find_head(objects, line);

			objects->entry[++objects->used] = (struct object_entry){ i, *head };
			*head = objects->used;
		}
	}
	return objects;
}

/* The last allocation before the crash that has this byte; null if there is none. */
static const struct history_event *object_at(struct cross_failure *checker, uint64_t address,
					     uint32_t crash)
{
	const struct history *history = &checker->session->executions.history;
	const struct cross_failure_objects *objects = checker->objects;

	if (!objects->used)
		return NULL;
	for (uint32_t i = *find_head(checker->objects, address & -(uint64_t)LINE); i;
	     i = objects->entry[i].next) {
		const struct history_event *event = &history->event[objects->entry[i].event];

		if (objects->entry[i].event < crash && address >= event->address &&
		    address < event->address + event->size)
			return event;
	}
	return NULL;
}

void cross_failure_end(struct cross_failure *checker)
{
	if (checker->objects) {
		free(checker->objects->line);
		free(checker->objects->head);
		free(checker->objects->entry);
		free(checker->objects);
	}
	free(checker->was_read);
	torn_free(checker->torn);
	free(checker->stage_read);
	free(checker->stack_kind);
	*checker = (struct cross_failure){ 0 };
}

bool cross_failure_start(struct cross_failure *checker, struct session *session)
{
	*checker = (struct cross_failure){ .session = session, .judges = true };
	checker->was_read = calloc(session->executions.history.events / 8 + 1, 1);
	checker->objects = list_objects(&session->executions.history);
	return checker->was_read && checker->objects;
}

/* ---- whose code ---- */

enum stack_kind { STACK_UNKNOWN, STACK_PROGRAM, STACK_LIBRARY };

/* Is the innermost frame in a library that has transactions, or is trusted? */
static bool is_library(struct cross_failure *checker, uint32_t stack)
{
	const struct session_module *module;
	uint32_t depth, image;
	const uint64_t *frame;

	if (!stack)
		return false;
	if (stack >= checker->stack_kinds) {
		uint32_t count = stack * 2;
		uint8_t *kinds = realloc(checker->stack_kind, count);

		if (!kinds)
			abort();
		memset(kinds + checker->stack_kinds, 0, count - checker->stack_kinds);
		checker->stack_kind = kinds;
		checker->stack_kinds = count;
	}
	if (!checker->stack_kind[stack]) {
		frame = stacks_get(&checker->session->stacks, stack, &depth, &image);
		module = depth ? session_module_at(checker->session, image, frame[0]) : NULL;
		checker->stack_kind[stack] = module && (module->transactional || module->trusted)
						     ? STACK_LIBRARY
						     : STACK_PROGRAM;
	}
	return checker->stack_kind[stack] == STACK_LIBRARY;
}

/* ---- bytes that are not judged ---- */

static uint64_t bytes_of_ranges(const struct view_range *range, uint32_t count, uint64_t line)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < count; i++)
		bytes |= history_bytes(line, range[i].start, range[i].end);
	return bytes;
}

static uint64_t protected_bytes(const struct cross_failure_run *run, uint64_t line)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < run->protecteds; i++)
		bytes |= history_bytes(line, run->protected[i].start, run->protected[i].end);
	return bytes;
}

static uint64_t volatile_bytes(const struct session *session, uint64_t line)
{
	uint64_t index = (line - session->lines.base) / LINE;

	return index < session->lines.count ? session->lines.line[index].excluded : 0;
}

/* ---- reads ---- */

uint64_t cross_failure_value(struct cross_failure_run *run, const struct read_record *record,
			     struct view_read *read)
{
	const unsigned char *certain = run->content(run->image, record->line);
	unsigned char content[LINE];

	read->line = NULL;
	if (!certain)
		return 0;
	run->view.verification = record->flags >> READ_VERIFICATION_SHIFT;
	view_read(&run->view, record->line, record->bytes, certain, read);
	if (!read->line)
		return execution_hash(certain, record->bytes);
	view_content(&run->view, read->line, read->version, certain, content);
	return execution_hash(content, record->bytes);
}

static const struct history_event *store_of(const struct cross_failure_run *run,
					    const struct history_line *line, uint32_t part)
{
	return &run->view.history->event[run->view.history->part[line->first + part].event];
}

static void add_event(uint32_t list[CROSS_FAILURE_EVENTS], uint32_t *count, uint32_t event)
{
	if (*count == CROSS_FAILURE_EVENTS) {
		memmove(list, list + 1, sizeof(*list) * (CROSS_FAILURE_EVENTS - 1));
		--*count;
	}
	list[(*count)++] = event;
}

/* All that might be missing, and was read. */
static void note_stores(struct cross_failure *checker, struct cross_failure_run *run,
			const struct read_record *record, const struct view_read *read)
{
	const struct history_line *line = read->versions.window.line;
	const struct history *history = run->view.history;

	for (uint32_t i = read->versions.window.from; i < read->versions.window.to; i++) {
		const struct history_part *part = &history->part[line->first + i];

		if (!(part->bytes & record->bytes))
			continue;
		checker->was_read[part->event / 8] |= 1 << part->event % 8;
		run->read_something = true;
		if (!(part->bytes & read->open))
			continue;
		add_event(run->suspect, &run->suspects, part->event);
		if (!history_has(history, &read->versions, &read->versions.version[read->version],
				 i))
			add_event(run->absent, &run->absents, part->event);
	}
}

/* The first run of bytes in a set. */
static void first_bytes(uint64_t bytes, uint64_t line, struct raw_finding *finding)
{
	unsigned from = __builtin_ctzll(bytes);
	uint64_t rest = ~(bytes >> from);

	finding->address = line + from;
	finding->size = rest ? (unsigned)__builtin_ctzll(rest) : LINE - from;
	if (finding->size > LINE - from)
		finding->size = LINE - from;
}

typedef void (*found_fn)(void *context, const struct raw_finding *finding);

static void judge_race(const struct cross_failure_run *run, const struct read_record *record,
		       const struct view_read *read, uint64_t bytes, found_fn found, void *context)
{
	struct raw_finding finding = { .kind = KIND_CROSS_FAILURE_RACE, .stack = record->stack };
	const struct history_line *line = read->versions.window.line;
	uint32_t store = read->store;

	first_bytes(bytes, record->line, &finding);
	/* The store that is named must be one of these bytes. */
	for (uint32_t i = read->versions.window.to; i-- > read->versions.window.from;) {
		const struct history_part *part = &run->view.history->part[line->first + i];

		if (part->bytes & bytes && part->settled >= run->view.crash->crash &&
		    (store == HISTORY_NEVER ||
		     !(run->view.history->part[line->first + store].bytes & bytes)))
			store = i;
	}
	if (store != HISTORY_NEVER && store_of(run, line, store)->flags & HISTORY_UNJUDGED)
		return;
	if (store != HISTORY_NEVER) {
		finding.other = store_of(run, line, store)->stack;
		finding.thread = store_of(run, line, store)->thread;
		finding.lost = line->first + store + 1;
	}
	finding.part = !read->differs;
	found(context, &finding);
}

/* Bytes of an object that nobody has set since it was allocated. */
static void judge_object(struct cross_failure *checker, struct cross_failure_run *run,
			 const struct read_record *record, uint64_t bytes, found_fn found,
			 void *context)
{
	const struct history *history = run->view.history;
	const struct history_line *line = history_find(history, record->line);
	unsigned byte = __builtin_ctzll(bytes);
	const struct history_event *object =
		object_at(checker, record->line + byte, run->view.crash->crash);
	struct history_window window = { .line = line };
	uint32_t part = HISTORY_NEVER;
	struct raw_finding finding = { .kind = KIND_CROSS_FAILURE_RACE,
				       .stack = record->stack,
				       .uninitialised = 1 };

	if (!object)
		return;
	if (line) {
		const struct view_line *uncertain = view_find(run->view.crash, record->line);

		if (uncertain)
			window.to = uncertain->to;
		else
			history_advance(history, &window, run->view.crash->crash);
		part = history_last_writer(history, line, window.to, byte);
	}
	if (part != HISTORY_NEVER && history->part[line->first + part].event >= object->data)
		return;
	first_bytes(bytes, record->line, &finding);
	finding.other = object->stack;
	finding.thread = object->thread;
	found(context, &finding);
}

/* ---- commit variables ---- */

/* The part that wrote a byte, as this run finds it; HISTORY_NEVER if it is older than the run. */
static uint32_t writer_of(const struct cross_failure_run *run, const struct view_read *read,
			  const struct history_line *line, unsigned byte)
{
	uint32_t writer[LINE];
	struct history_window window = { .line = line };

	if (read->line) {
		history_writers(run->view.history, &read->versions, read->version, writer);
		if (writer[byte] != HISTORY_NEVER)
			return writer[byte];
		return history_last_writer(run->view.history, line, read->versions.window.from,
					   byte);
	}
	history_advance(run->view.history, &window, run->view.crash->crash);
	return history_last_writer(run->view.history, line, window.to, byte);
}

static void observe(struct cross_failure *checker, struct cross_failure_run *run,
		    const struct read_record *record, const struct view_read *read)
{
	const struct executions *all = &checker->session->executions;
	const struct history *history = run->view.history;
	const struct history_line *line = history_find(history, record->line);

	for (uint32_t i = 0; line && i < all->commits; i++) {
		uint64_t bytes = record->bytes & history_bytes(record->line, all->commit[i].start,
							       all->commit[i].end);
		uint32_t part;

		if (!bytes)
			continue;
		part = writer_of(run, read, line, __builtin_ctzll(bytes));
		run->observed[i].seen = part != HISTORY_NEVER;
		if (part == HISTORY_NEVER)
			continue;
		run->observed[i].event = history->part[line->first + part].event;
		part = history_last_writer(history, line, part, __builtin_ctzll(bytes));
		run->observed[i].before = part == HISTORY_NEVER
						  ? HISTORY_NEVER
						  : history->part[line->first + part].event;
	}
}

/* The commit variable that decides about this byte; EXECUTION_RANGES if none does. */
static uint32_t commit_of(const struct executions *all, uint64_t address, bool *explicit)
{
	*explicit = true;
	for (uint32_t i = 0; i < all->covers; i++) {
		if (address < all->cover[i].range.start || address >= all->cover[i].range.end)
			continue;
		for (uint32_t k = 0; k < all->commits; k++)
			if (all->commit[k].start == all->cover[i].variable)
				return k;
	}
	*explicit = false;
	return all->commits == 1 && !all->covers ? 0 : EXECUTION_RANGES;
}

/* Was the store persistent before the commit was made? Or does the line keep their order? */
static bool is_ordered(const struct history *history, const struct history_line *line,
		       uint32_t part, uint32_t commit)
{
	const struct history_part *store = &history->part[line->first + part];
	uint64_t of_commit = history->event[commit].address & -(uint64_t)LINE;

	if (store->event > commit)
		return false;
	return store->settled < commit || of_commit == line->address;
}

/*
 * Set while the object was allocated: by its constructor, before the library published it. It is
 * valid if it can be found at all.
 */
static bool is_constructed(struct cross_failure *checker, uint64_t address, uint32_t store)
{
	const struct history *history = &checker->session->executions.history;
	const struct cross_failure_objects *objects = checker->objects;

	if (!objects->used)
		return false;
	for (uint32_t i = *find_head(checker->objects, address & -(uint64_t)LINE); i;
	     i = objects->entry[i].next) {
		const struct history_event *object = &history->event[objects->entry[i].event];

		if (address >= object->address && address < object->address + object->size &&
		    store >= object->data && store < objects->entry[i].event)
			return true;
	}
	return false;
}

static void judge_commit(struct cross_failure *checker, struct cross_failure_run *run,
			 const struct read_record *record, const struct view_read *read,
			 uint64_t bytes, found_fn found, void *context)
{
	const struct executions *all = &checker->session->executions;
	const struct history *history = run->view.history;
	const struct history_line *line = history_find(history, record->line);
	struct raw_finding finding = { .kind = KIND_CROSS_FAILURE_SEMANTIC,
				       .stack = record->stack };

	for (; bytes; bytes &= bytes - 1) {
		unsigned byte = __builtin_ctzll(bytes);
		bool explicit, stale;
		uint32_t commit = commit_of(all, record->line + byte, &explicit);
		uint32_t part, event;

		if (commit == EXECUTION_RANGES || !run->observed[commit].seen)
			continue;
		part = line ? writer_of(run, read, line, byte) : HISTORY_NEVER;
		event = part == HISTORY_NEVER ? HISTORY_NEVER
					      : history->part[line->first + part].event;
		stale = explicit && run->observed[commit].before != HISTORY_NEVER &&
			(event == HISTORY_NEVER || event < run->observed[commit].before);
		if (!stale && (part == HISTORY_NEVER ||
			       is_ordered(history, line, part, run->observed[commit].event)))
			continue;
		if (part != HISTORY_NEVER && (history->event[event].flags & HISTORY_LIBRARY ||
					      is_library(checker, history->event[event].stack) ||
					      is_constructed(checker, record->line + byte, event)))
			continue;
		first_bytes(bytes, record->line, &finding);
		finding.other = part == HISTORY_NEVER ? 0 : history->event[event].stack;
		finding.commit = history->event[run->observed[commit].event].stack;
		finding.stale = stale;
		found(context, &finding);
		return;
	}
}

/* ---- stores of recoveries ---- */

/* The store of a crashed recovery that may be missing, newest first; commit stores may be. */
static const struct history_part *lost_in_stage(const struct cross_failure_run *run,
						const struct cross_failure_stage *stage,
						uint64_t line, uint64_t *bytes)
{
	const struct history_line *stored = history_find(stage->history, line);

	for (uint32_t i = stored ? stored->parts : 0; i-- > 0;) {
		const struct history_part *part = &stage->history->part[stored->first + i];

		if (part->event >= stage->crash || part->settled < stage->crash ||
		    !(part->bytes & *bytes))
			continue;
		if (run->view.strict ||
		    !(stage->history->event[part->event].flags & HISTORY_ATOMIC))
			return part;
		*bytes &= ~part->bytes;
	}
	return NULL;
}

static void mark_stage_read(struct cross_failure *checker, uint32_t stack)
{
	if (stack / 8 >= checker->stage_reads) {
		uint32_t wanted = stack / 4 + 64;

		checker->stage_read = realloc(checker->stage_read, wanted);
		if (!checker->stage_read)
			abort();
		memset(checker->stage_read + checker->stage_reads, 0,
		       wanted - checker->stage_reads);
		checker->stage_reads = wanted;
	}
	checker->stage_read[stack / 8] |= 1 << stack % 8;
}

/* Stores that never become persistent, and that somebody reads all the same. */
static void note_stage_reads(struct cross_failure *checker, const struct cross_failure_run *run,
			     const struct read_record *record)
{
	for (unsigned i = 0; i < run->stages; i++) {
		const struct history *history = run->stage[i].history;
		const struct history_line *line = history_find(history, record->line);

		for (uint32_t k = 0; line && k < line->parts; k++) {
			const struct history_part *part = &history->part[line->first + k];

			if (part->event >= run->stage[i].crash || !(part->bytes & record->bytes))
				continue;
			if (history == run->view.history)
				checker->was_read[part->event / 8] |= 1 << part->event % 8;
			else if (part->settled == HISTORY_NEVER)
				mark_stage_read(checker, history->event[part->event].stack);
		}
	}
}

/* Contents are all that is known: the last store that may be missing is the one to name. */
static void judge_stages(struct cross_failure *checker, const struct cross_failure_run *run,
			 const struct read_record *record, const struct view_read *read,
			 found_fn found, void *context)
{
	const struct executions *all = &checker->session->executions;
	uint64_t bytes = read->varies & record->bytes &
			 ~volatile_bytes(checker->session, record->line) &
			 ~bytes_of_ranges(all->commit, all->commits, record->line) &
			 ~bytes_of_ranges(all->checksum, all->checksums, record->line);

	note_stage_reads(checker, run, record);
	for (unsigned i = 0; i < run->stages && bytes; i++) {
		const struct history *history = run->stage[i].history;
		const struct history_part *part =
			lost_in_stage(run, &run->stage[i], record->line, &bytes);
		struct raw_finding finding = { .kind = KIND_CROSS_FAILURE_RACE,
					       .stack = record->stack };
		uint32_t flush;

		if (!part)
			continue;
		first_bytes(part->bytes & record->bytes, record->line, &finding);
		finding.other = history->event[part->event].stack;
		finding.thread = history->event[part->event].thread;
		finding.why = history_why_uncertain(history, record->line, part,
						    run->stage[i].crash, &flush);
		finding.flush = flush == HISTORY_NEVER ? 0 : history->event[flush].stack;
		found(context, &finding);
		return;
	}
}

/* ---- torn stores ---- */

static void report_torn(struct cross_failure *checker, const struct history *history,
			const struct read_record *record, uint32_t number, uint64_t bytes,
			found_fn found, void *context)
{
	const struct history_part *part = &history->part[number];
	const struct history_event *store = &history->event[part->event];
	const struct executions *all = &checker->session->executions;
	uint64_t read = part->bytes & bytes;
	bool benign = record->flags >> READ_VERIFICATION_SHIFT ||
		      !(read & ~bytes_of_ranges(all->checksum, all->checksums, record->line));
	struct raw_finding finding = {
		.kind = KIND_TORN_STORE,
		.stack = record->stack,
		.other = store->stack,
		.thread = store->thread,
		.custom = benign ? RAW_TORN_BENIGN : RAW_TORN,
		.part = store->size == 1,
	};

	if (!store->stack || !torn_is_new(checker->torn, record->stack, store->stack, benign))
		return;
	first_bytes(read, record->line, &finding);
	finding.within = finding.address - store->address;
	finding.place = store->place;
	found(context, &finding);
}

/* The bytes of a read that matter. */
static uint64_t torn_bytes(struct cross_failure *checker, const struct cross_failure_run *run,
			   const struct read_record *record)
{
	const struct executions *all = &checker->session->executions;
	bool verified = record->flags >> READ_VERIFICATION_SHIFT;
	uint64_t bytes;

	if (!checker->judges || (record->flags & READ_UNJUDGED && !verified) ||
	    is_library(checker, record->stack))
		return 0;
	bytes = record->bytes & ~volatile_bytes(checker->session, record->line);
	if (!run->view.strict)
		bytes &= ~bytes_of_ranges(all->commit, all->commits, record->line);
	return bytes;
}

static void judge_torn(struct cross_failure *checker, const struct cross_failure_run *run,
		       const struct read_record *record, uint64_t judged,
		       const struct view_writers *possible, found_fn found, void *context)
{
	for (uint32_t i = 0; i < possible->count; i++)
		if (run->view.history->part[possible->part[i]].bytes & judged &&
		    torn_is_race(checker->torn, record->line, possible->part[i],
				 run->view.crash->crash))
			report_torn(checker, run->view.history, record, possible->part[i], judged,
				    found, context);
}

static void note_torn(struct cross_failure *checker, const struct read_record *record,
		      const struct view_writers *read)
{
	for (uint32_t i = 0; i < read->count; i++)
		torn_note_read(checker->torn, record->line, read->part[i]);
}

/* Has this store of a recovery left what is there now? */
static bool is_content_of(const struct history *history, const struct history_part *part,
			  const struct read_record *record,
			  const unsigned char content[HISTORY_LINE_SIZE])
{
	const struct history_event *store = &history->event[part->event];

	for (uint64_t rest = part->bytes & record->bytes; rest; rest &= rest - 1) {
		unsigned byte = __builtin_ctzll(rest);

		if (history->data[store->data + record->line + byte - store->address] !=
		    content[byte])
			return false;
	}
	return true;
}

/* After further crashes only contents are known: the last store that fits is taken for the one. */
static void judge_torn_stages(struct cross_failure *checker, const struct cross_failure_run *run,
			      const struct read_record *record, const struct view_read *read,
			      found_fn found, void *context)
{
	const unsigned char *content =
		run->view.crash->content[read->line->content + read->version];
	uint64_t judged = torn_bytes(checker, run, record);

	if (!checker->torn)
		return;
	for (unsigned i = 0; i < run->stages && read->line->contents; i++) {
		const struct cross_failure_stage *stage = &run->stage[i];
		const struct history_line *line =
			stage->torn ? history_find(stage->history, record->line) : NULL;

		for (uint32_t k = line ? line->parts : 0; k-- > 0;) {
			uint32_t number = line->first + k;
			const struct history_part *part = &stage->history->part[number];

			if (part->event >= stage->crash || !(part->bytes & record->bytes) ||
			    !is_content_of(stage->history, part, record, content))
				continue;
			if (part->bytes & judged &&
			    torn_is_race(stage->torn, record->line, number, stage->crash))
				report_torn(checker, stage->history, record, number, judged, found,
					    context);
			torn_note_read(stage->torn, record->line, number);
			return;
		}
	}
}

uint32_t cross_failure_judge_torn(struct cross_failure *checker, struct cross_failure_run *run,
				  const struct read_record *record, found_fn found, void *context)
{
	struct view_writers writers;

	if (record->flags & READ_OUTSIDE || run->stages)
		return UINT32_MAX;
	view_writers(&run->view, record->line, record->bytes, false, &writers);
	if (writers.count)
		judge_torn(checker, run, record, torn_bytes(checker, run, record), &writers, found,
			   context);
	note_torn(checker, record, &writers);
	return !writers.count ? UINT32_MAX : writers.count == 1 ? writers.part[0] + 1 : 0;
}

void cross_failure_judge(struct cross_failure *checker, struct cross_failure_run *run,
			 const struct read_record *record, found_fn found, void *context)
{
	const struct executions *all = &checker->session->executions;
	uint64_t judged, racing = 0;
	struct view_read read;

	if (record->flags & READ_OUTSIDE)
		return;
	if (checker->torn && !run->stages) {
		bool uncertain = view_find(run->view.crash, record->line);
		uint64_t torn = torn_bytes(checker, run, record);
		struct view_writers writers = { 0 };

		if (torn || !uncertain)
			view_writers(&run->view, record->line, record->bytes, false, &writers);
		if (torn)
			judge_torn(checker, run, record, torn, &writers, found, context);
		cross_failure_value(run, record, &read);
		if (uncertain)
			view_writers(&run->view, record->line, record->bytes, true, &writers);
		note_torn(checker, record, &writers);
	} else {
		cross_failure_value(run, record, &read);
	}
	if (run->stages) {
		run->read_something |= read.line != NULL;
		if (checker->judges && read.line && !(record->flags & READ_UNJUDGED) &&
		    !is_library(checker, record->stack))
			judge_stages(checker, run, record, &read, found, context);
		if (read.line)
			judge_torn_stages(checker, run, record, &read, found, context);
		return;
	}
	if (read.line) {
		note_stores(checker, run, record, &read);
		run->read_something |= (read.line->certain & record->bytes) != 0;
	}
	if (all->commits)
		observe(checker, run, record, &read);
	if (!checker->judges || record->flags & READ_UNJUDGED || is_library(checker, record->stack))
		return;
	judged = record->bytes & ~volatile_bytes(checker->session, record->line) &
		 ~bytes_of_ranges(all->commit, all->commits, record->line) &
		 ~bytes_of_ranges(all->checksum, all->checksums, record->line) &
		 ~protected_bytes(run, record->line);
	if (read.line)
		racing = read.open & ~read.commit & judged;
	if (racing)
		judge_race(run, record, &read, racing, found, context);
	judged &= ~(read.line ? read.open : 0);
	if (judged && !(record->flags & READ_BULK))
		judge_object(checker, run, record, judged, found, context);
	if (judged && all->commits)
		judge_commit(checker, run, record, &read, judged, found, context);
}
