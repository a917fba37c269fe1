/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Why recoveries fail. A failing recovery is run again with everything newer than it was, as long
 * as it fails: in the end each store that is still missing must be (delta debugging, Zeller and
 * Hildebrandt, TSE 2002, over the lines that it found old).
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "drive/engine.h"

enum { PROBES = 256, LINES_MAX = 1 << 14, TICK_MS = 20 };
#define LEAST_SECONDS 2.0
#define SHARE_OF_TIME 0.25

/* One failure under examination. */
struct failure {
	struct engine *engine;
	struct worker *worker;
	const struct raw_finding *finding;
	struct check_witness *witness;
	struct cross_failure_run run; /* as the failing recovery has left it */
	uint32_t lines;               /* of its crash */
	uint64_t *read;               /* bytes of each that it has read */
	uint32_t *newest;             /* version of each */
	uint32_t *version;            /* that fails, as far as is known */
	uint32_t *old;                /* numbers of lines that are not the newest */
	uint32_t olds;
	unsigned probes;
	double until;
};

/* ---- running it again ---- */

static bool run_probe(struct failure *f, const struct task *task)
{
	struct worker *worker = f->worker;

	worker->running = *task;
	worker->execution->crash = worker->crash;
	if (task->from)
		chain_apply(task->from, worker->execution);
	worker->probe = true;
	if (!worker_start(f->engine, worker, &worker->running))
		return false;
	while (worker->phase != WORKER_IDLE) {
		struct pollfd event = { .fd = worker->zygote.channel, .events = POLLIN };

		poll(&event, 1, TICK_MS);
		if (!worker_hear(f->engine, worker))
			return false;
		worker_watch(f->engine, worker);
		if (target_interrupted() || target_now() > f->until)
			return false;
	}
	worker->probe = false;
	f->probes++;
	return true;
}

/* Does it fail in the same way with each line in this version? */
static bool fails_with(struct failure *f, const uint32_t *version)
{
	struct chain_state *state;
	bool ran;

	if (f->probes >= PROBES || target_now() > f->until)
		return false;
	state = chain_fixed(&f->run.view, &f->worker->image, version);
	ran = run_probe(f, &(struct task){ .from = state, .latest = true });
	f->worker->execution->crash = f->worker->crash;
	chain_free(state);
	return ran && f->worker->probed.symptom == f->finding->custom &&
	       f->worker->probed.stack == f->finding->stack;
}

/* ---- the lines that must be old ---- */

/* Are the lines in [from, to) of the list needed? If not they are made new, and leave it. */
static bool drop_lines(struct failure *f, uint32_t from, uint32_t to)
{
	uint32_t saved[LINES_MAX];

	for (uint32_t i = from; i < to; i++) {
		saved[i] = f->version[f->old[i]];
		f->version[f->old[i]] = f->newest[f->old[i]];
	}
	if (fails_with(f, f->version)) {
		memmove(f->old + from, f->old + to, (f->olds - to) * sizeof(*f->old));
		f->olds -= to - from;
		return true;
	}
	for (uint32_t i = from; i < to; i++)
		f->version[f->old[i]] = saved[i];
	return false;
}

static void minimise_lines(struct failure *f)
{
	for (uint32_t share = f->olds; share; share /= 2) {
		bool dropped = true;

		while (dropped) { /* one that is gone may make others dispensable */
			dropped = false;
			for (uint32_t from = 0; from < f->olds;)
				if (drop_lines(f, from,
					       from + share < f->olds ? from + share : f->olds))
					dropped = true;
				else
					from += share;
		}
	}
}

/* The newest version of each line with which it still fails; whether one has become newer. */
static bool renew_lines(struct failure *f)
{
	bool any = false;

	for (uint32_t i = 0; i < f->olds; i++) {
		uint32_t line = f->old[i], known = f->version[line];

		for (uint32_t version = f->newest[line]; version-- > known + 1;) {
			f->version[line] = version;
			if (fails_with(f, f->version)) {
				any = true;
				break;
			}
			f->version[line] = known;
		}
	}
	return any;
}

/* One line that is newer may make another one dispensable. */
static bool minimise(struct failure *f)
{
	minimise_lines(f);
	return renew_lines(f) && f->probes < PROBES;
}

/* ---- what is told ---- */

/* A store that is missing, and the line that misses it. */
struct missing {
	const struct history_part *part;
	uint64_t line;
};

static int by_event(const void *left, const void *right)
{
	uint32_t a = ((const struct missing *)left)->part->event,
		 b = ((const struct missing *)right)->part->event;

	return a < b ? -1 : a > b;
}

/* False if there is no room for it. */
static bool add_missing(struct failure *f, const struct missing *missing)
{
	const struct history *history = f->run.view.history;
	struct check_witness *witness = f->witness;
	struct check_missing *lost = &witness->lost[witness->missing];
	uint32_t stack = history->event[missing->part->event].stack, flush;

	for (unsigned i = 0; i < witness->missing; i++)
		if (witness->lost[i].stack == stack)
			return true;
	if (witness->missing == CHECK_MISSING || !stack)
		return false;
	*lost = (struct check_missing){ .stack = stack };
	if (f->engine->session->options.model == LINES_PX86) {
		lost->why = history_why_uncertain(history, missing->line, missing->part,
						  f->worker->image.crash, &flush);
		lost->flush = flush == HISTORY_NEVER ? 0 : history->event[flush].stack;
	}
	witness->missing++;
	return true;
}

/* The stores that are missing in lines that must be old, and that it reads, all of them. */
static bool note_missing(struct failure *f)
{
	const struct history *history = f->run.view.history;
	struct missing *list = NULL;
	size_t count = 0;
	bool all = true;

	for (uint32_t i = 0; i < f->olds; i++) {
		const struct view_line *old = &f->run.view.crash->line[f->old[i]];
		struct history_versions versions;

		view_versions(history, f->run.view.crash, old, &versions);
		for (uint32_t k = versions.window.from; k < versions.window.to; k++) {
			const struct history_part *part =
				&history->part[versions.window.line->first + k];

			if (history_has(history, &versions,
					&versions.version[f->version[f->old[i]]], k) ||
			    !(part->bytes & f->read[f->old[i]]))
				continue;
			list = realloc(list, (count + 1) * sizeof(*list));
			if (!list)
				abort();
			list[count++] = (struct missing){ part, old->address };
		}
	}
	if (count)
		qsort(list, count, sizeof(*list), by_event);
	for (size_t i = 0; i < count; i++)
		all &= add_missing(f, &list[i]);
	free(list);
	return all;
}

/* Who wrote a byte in a version of a line; HISTORY_NEVER if that was before the program. */
static uint32_t writer_of(const struct failure *f, const struct history_versions *versions,
			  uint32_t version, unsigned byte)
{
	uint32_t writer[HISTORY_LINE_SIZE];

	history_writers(f->run.view.history, versions, version, writer);
	if (writer[byte] != HISTORY_NEVER)
		return writer[byte];
	return history_last_writer(f->run.view.history, versions->window.line,
				   versions->window.from, byte);
}

/* A read of something that could have been otherwise: what came of it, and whose store that was. */
static void note_read(struct failure *f, const struct read_record *record, uint32_t number)
{
	const struct history *history = f->run.view.history;
	const struct view_line *line = &f->run.view.crash->line[number];
	unsigned byte = __builtin_ctzll(record->bytes), size = 0;
	struct check_witness *witness = f->witness;
	unsigned char content[HISTORY_LINE_SIZE];
	struct history_versions versions;
	struct check_read *note;
	uint32_t part;

	if (witness->reads == CHECK_READS)
		return;
	while (byte + size < HISTORY_LINE_SIZE && record->bytes >> (byte + size) & 1)
		size++;
	view_versions(history, f->run.view.crash, line, &versions);
	view_content(&f->run.view, line, f->version[number],
		     image_content(&f->worker->image, record->line), content);
	part = writer_of(f, &versions, f->version[number], byte);
	note = &witness->read[witness->reads++];
	*note = (struct check_read){
		.address = record->line + byte,
		.size = size,
		.load = record->stack,
		.newest = part == writer_of(f, &versions, f->newest[number], byte),
	};
	if (part != HISTORY_NEVER)
		note->store =
			history->event[history->part[versions.window.line->first + part].event]
				.stack;
	memcpy(note->value, content + byte,
	       size < sizeof(note->value) ? size : sizeof(note->value));
}

/* What it reads of each uncertain line, in the run that has just ended; noted if `notes`. */
static void look_at_reads(struct failure *f, bool notes)
{
	const struct execution *execution = f->worker->execution;

	memset(f->read, 0, f->lines * sizeof(*f->read));
	for (uint32_t i = 0; i < execution->reads; i++) {
		const struct read_record *record = &execution->read[i];
		const struct view_line *line = record->flags & READ_OUTSIDE
						       ? NULL
						       : view_find(f->run.view.crash, record->line);

		if (!line)
			continue;
		f->read[line - f->run.view.crash->line] |= record->bytes;
		if (notes)
			note_read(f, record, line - f->run.view.crash->line);
	}
}

/* Tells about the recovery that fails with what must be missing, and no more. */
static void tell(struct failure *f)
{
	bool minimal = f->probes < PROBES;

	f->probes = 0; /* one more is always there */
	if (!fails_with(f, f->version))
		return;
	f->witness->read = calloc(CHECK_READS, sizeof(*f->witness->read));
	if (!f->witness->read)
		abort();
	look_at_reads(f, true);
	f->witness->minimal = note_missing(f) && minimal;
}

/* ---- one failure ---- */

/* The recovery once more, exactly as it failed; then it is known what it found. */
static bool repeat(struct failure *f)
{
	struct task task = {
		.latest = f->witness->latest,
		.script_length = f->witness->choices,
	};
	const struct execution *execution = f->worker->execution;

	memcpy(task.script, f->witness->taken, task.script_length);
	if (!run_probe(f, &task) || f->worker->probed.symptom != f->finding->custom)
		return false;
	judge_start_view(f->engine, f->worker, &task, &f->run);
	for (uint32_t i = 0; i < execution->reads; i++) {
		struct view_read read;

		if (!(execution->read[i].flags & READ_OUTSIDE))
			cross_failure_value(&f->run, &execution->read[i], &read);
	}
	return true;
}

static void list_old(struct failure *f)
{
	const struct view *view = &f->run.view;

	for (uint32_t i = 0; i < f->lines; i++) {
		struct history_versions versions;

		view_versions(view->history, view->crash, &view->crash->line[i], &versions);
		f->newest[i] = f->version[i] = view_default(&versions, true);
		if (!view->state[i].started || view->state[i].chosen == f->newest[i])
			continue;
		f->version[i] = view->state[i].chosen;
		f->old[f->olds++] = i;
	}
}

static void *allocate(size_t count, size_t size)
{
	void *memory = calloc(count + 1, size);

	if (!memory)
		abort();
	return memory;
}

static void explain(struct failure *f)
{
	f->lines = f->worker->crash.lines;
	f->read = allocate(f->lines, sizeof(*f->read));
	f->newest = allocate(f->lines, sizeof(*f->newest));
	f->version = allocate(f->lines, sizeof(*f->version));
	f->old = allocate(f->lines, sizeof(*f->old));
	if (repeat(f)) {
		list_old(f);
		if (fails_with(f, f->version)) {
			while (minimise(f))
				continue;
			tell(f);
		}
	}
	free(f->read);
	free(f->newest);
	free(f->version);
	free(f->old);
}

/* ---- all of them ---- */

/* One that can be run again without waiting for it to hang. */
static bool is_explainable(const struct engine *engine, const struct raw_finding *finding)
{
	const struct check_witness *witness =
		finding->witness ? &engine->check->witness[finding->witness - 1] : NULL;

	return finding->kind == KIND_CRASH_SYMPTOM && finding->count && witness &&
	       witness->crash_number && !witness->further &&
	       witness->schedule == engine->schedule && witness->descending == engine->descending &&
	       !witness->minimal &&
	       (finding->custom < SYMPTOM_HANG || finding->custom == SYMPTOM_DEADLOCK ||
		finding->custom > SYMPTOM_PROCESSES);
}

/* Of those behind a crash, the one with the earliest. */
static const struct raw_finding *next_failure(const struct engine *engine, const uint8_t *done)
{
	const struct raw_table *raw = &engine->session->raw;
	const struct check_witness *witness = engine->check->witness;
	const struct raw_finding *best = NULL;

	for (uint32_t i = 1; i <= raw->entries; i++)
		if (!done[i] && is_explainable(engine, &raw->entry[i]) &&
		    (!best || witness[raw->entry[i].witness - 1].crash_event <
				      witness[best->witness - 1].crash_event))
			best = &raw->entry[i];
	return best;
}

static struct worker *find_idle(const struct engine *engine)
{
	for (unsigned i = 0; i < engine->workers; i++)
		if (engine->worker[i].phase == WORKER_IDLE)
			return &engine->worker[i];
	return NULL;
}

void explain_failures(struct engine *engine)
{
	struct worker *worker = find_idle(engine);
	double started = target_now(), share = (started - engine->started) * SHARE_OF_TIME;
	double until = started + (share > LEAST_SECONDS ? share : LEAST_SECONDS);
	uint8_t *done = allocate(engine->session->raw.entries + 1, 1);
	const struct raw_finding *finding;
	bool ready = false;

	while (worker && worker->execution->lazy && !worker->driver.command &&
	       target_now() < until && !target_interrupted() &&
	       (finding = next_failure(engine, done))) {
		struct failure failure = {
			.engine = engine,
			.worker = worker,
			.finding = finding,
			.witness = &engine->check->witness[finding->witness - 1],
			.until = until,
		};

		done[finding - engine->session->raw.entry] = 1;
		if (!ready) {
			image_end(&worker->image);
			ready = image_start(&worker->image, engine->session, worker->execution);
		}
		if (!ready || !image_advance(&worker->image, failure.witness->crash_event))
			break;
		worker->crash = worker->execution->crash;
		if (worker->crash.lines <= LINES_MAX)
			explain(&failure);
	}
	free(done);
}
