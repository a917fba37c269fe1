/* SPDX-License-Identifier: BSD-3-Clause */
/* What an execution means: findings, and what else is to be tried at its crash. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drive/engine.h"

/* ---- tasks ---- */

unsigned judge_stage(const struct task *task)
{
	return task->from ? task->from->stage : 1;
}

void judge_add_task(const struct engine *engine, struct worker *worker, const struct task *task)
{
	if (!engine->check->settings.exhaustive && worker->given + worker->tasks == ENGINE_TASKS) {
		worker->cut = true;
		return;
	}
	if (worker->tasks == worker->task_room) {
		worker->task_room = worker->task_room ? worker->task_room * 2 : ENGINE_TASKS;
		worker->task = realloc(worker->task, worker->task_room * sizeof(*worker->task));
		if (!worker->task)
			abort();
	}
	worker->task[worker->tasks++] = *task;
}

/* Every value that was not taken, of the choices behind those that the script fixed. */
static void add_alternatives(const struct engine *engine, struct worker *worker,
			     const struct task *task, const struct view *view)
{
	uint32_t choices = view->choices < VIEW_CHOICES ? view->choices : VIEW_CHOICES;
	uint64_t all = 0;

	if (view->choices > VIEW_CHOICES)
		session_limit(engine->session, UINT32_MAX,
			      "a recovery reads so much that is uncertain that not all of it was "
			      "varied");
	if (task->random || worker->resumed)
		return;
	for (uint32_t i = task->script_length; i < choices; i++)
		all += view->options[i] - 1;
	/* Too many to combine them: one commit store at a time. */
	if (!engine->check->settings.exhaustive && task->script_length &&
	    worker->given + worker->tasks + all > ENGINE_TASKS) {
		worker->cut = true;
		return;
	}
	for (uint32_t i = task->script_length; i < choices; i++)
		for (uint32_t other = 1; other < view->options[i]; other++) {
			struct task next = {
				.from = task->from,
				.latest = task->latest,
				.script_length = i + 1,
			};

			memcpy(next.script, view->taken, i);
			next.script[i] = other;
			judge_add_task(engine, worker, &next);
		}
}

/* ---- judging ---- */

struct torn *judge_new_torn(const struct engine *engine, const struct history *history,
			    bool prebuilt)
{
	const struct session_options *options = &engine->session->options;
	struct torn_settings settings = {
		.prefix = !engine->check->settings.no_prefix,
		.eadr = options->model == LINES_EADR,
	};

	return options->enabled & 1u << KIND_TORN_STORE ? torn_new(history, prebuilt, &settings)
							: NULL;
}

/* What threads of a recovery knew of each other is not written down. */
static struct torn *torn_of_leaf(const struct engine *engine, struct leaf *leaf)
{
	if (!leaf->torn)
		leaf->torn = judge_new_torn(engine, &leaf->history, false);
	if (leaf->torn && torn_threads(leaf->torn) == 1)
		return leaf->torn;
	return NULL;
}

void judge_start_view(struct engine *engine, struct worker *worker, const struct task *task,
		      struct cross_failure_run *run)
{
	const struct executions *all = &engine->session->executions;
	size_t lines = worker->execution->crash.lines;

	if (lines > worker->state_room) {
		free(worker->state);
		worker->state_room = lines * 2;
		worker->state = calloc(worker->state_room, sizeof(*worker->state));
		if (!worker->state)
			abort();
	}
	for (size_t i = 0; i < lines; i++)
		worker->state[i].started = 0;
	*run = (struct cross_failure_run){
		.view = {
			.history = &all->history,
			.crash = &worker->execution->crash,
			.state = worker->state,
			.commit = all->commit,
			.commits = all->commits,
			.checksum = all->checksum,
			.checksums = all->checksums,
			.latest = task->latest,
			.strict = engine->check->settings.strict,
			.exhaustive = engine->check->settings.exhaustive,
			.random = task->random,
			.script = task->script,
			.script_length = task->script_length,
		},
		.content = (const unsigned char *(*)(const void *, uint64_t))image_content,
		.image = &worker->image,
		.protected = worker->image.protected,
		.protecteds = worker->image.protecteds,
	};
	for (const struct chain_state *from = task->from; from; from = from->before)
		if (from->leaf)
			run->stage[run->stages++] =
				(struct cross_failure_stage){ &from->leaf->history, from->crash,
							      torn_of_leaf(engine, from->leaf) };
	if (run->stages) /* and what the program itself has left, behind them */
		run->stage[run->stages++] =
			(struct cross_failure_stage){ &all->history, worker->image.crash,
						      engine->checker.torn };
}

/* ---- crashes inside of a recovery ---- */

/* One task for each point at which the recovery itself could crash. */
static void add_crashes(struct engine *engine, struct worker *worker, const struct task *task,
			struct leaf *leaf)
{
	const struct history *history = &leaf->history;
	struct cross_failure_run run;
	uint32_t first = 0;

	while (history->event[first].kind != HISTORY_STORE) /* there is one: see leaf_new */
		first++;
	for (uint32_t i = 0; i < history->crashes; i++) {
		struct chain_state *state;

		if (first >= history->crash[i])
			continue; /* nothing has been stored yet */
		judge_start_view(engine, worker, task, &run);
		state = chain_new(leaf, history->crash[i], &run.view, &worker->image);
		state->stage = judge_stage(task) + 1;
		state->before = task->from;
		state->next = worker->chains;
		worker->chains = state;
		if (state->cut)
			session_limit(engine->session, UINT32_MAX,
				      "--crashes: some line could hold more than 255 contents: not "
				      "all of them were tried");
		engine->check->counts.further_crash_points++;
		judge_add_task(engine, worker, &(struct task){ .from = state, .latest = true });
	}
}

struct judging {
	struct engine *engine;
	struct worker *worker;
	const struct task *task;
	const struct view *view;
	const struct outcome *outcome; /* of a symptom */
};

static uint32_t stack_of_crash(const struct history *history, uint32_t crash)
{
	if (crash < history->events && history->event[crash].stack)
		return history->event[crash].stack;
	while (crash-- > 0) /* an event without a place: the last one before it that has one */
		if (history->event[crash].stack)
			return history->event[crash].stack;
	return 0;
}

/* The text of the schedule that is under examination, made when it is first asked for. */
static uint32_t schedule_of(struct engine *engine)
{
	struct check *check = engine->check;

	if (engine->schedule || !engine->session->executions.schedule.points)
		return engine->schedule;
	check->schedule = realloc(check->schedule, (check->schedules + 1ul) * sizeof(char *));
	if (!check->schedule)
		abort();
	check->schedule[check->schedules] = schedules_describe(
		&check->settings.schedules, &engine->session->executions.schedule);
	return engine->schedule = ++check->schedules;
}

static struct check_witness *new_witness(struct check *check)
{
	check->witness =
		realloc(check->witness, (check->witnesses + 1ul) * sizeof(*check->witness));
	if (!check->witness)
		abort();
	return &check->witness[check->witnesses++];
}

/* Something happened to the program itself, before any crash. */
static void found_before(struct engine *engine, uint32_t symptom, uint32_t stack, char *message)
{
	const struct execution *program = &engine->session->executions.execution[0];
	struct raw_finding finding = {
		.kind = KIND_CRASH_SYMPTOM,
		.stack = stack,
		.custom = symptom,
	};
	uint32_t number = checkers_report(&finding, UINT32_MAX);
	struct raw_finding *known = &engine->session->raw.entry[number];
	struct check_witness *witness;

	if (!number || known->witness) {
		free(message);
		return;
	}
	witness = new_witness(engine->check);
	*witness = (struct check_witness){
		.schedule = schedule_of(engine),
		.deadlocked = program->deadlocked,
		.message = message,
	};
	memcpy(witness->deadlock, program->deadlock, sizeof(witness->deadlock));
	known->witness = engine->check->witnesses;
}

/* What was found while the program ran needs no crash, but perhaps this schedule. */
static void add_schedules(struct engine *engine)
{
	struct raw_table *raw = &engine->session->raw;
	uint32_t shared = 0;

	for (uint32_t i = 1; i <= raw->entries; i++) {
		if (raw->entry[i].witness || !raw->entry[i].count)
			continue;
		if (!shared) {
			*new_witness(engine->check) =
				(struct check_witness){ .schedule = schedule_of(engine) };
			shared = engine->check->witnesses;
		}
		raw->entry[i].witness = shared;
	}
}

void judge_program(struct engine *engine)
{
	const struct execution *program = &engine->session->executions.execution[0];
	bool chosen = engine->check->settings.schedules.policy != SCHEDULE_ROUND_ROBIN;
	int signal = engine->check->end.signal;
	char *message;

	if (program->deadlocked)
		found_before(engine, SYMPTOM_DEADLOCK, program->deadlock[0],
			     strdup("the program deadlocks: all its threads wait, and nobody can "
				    "wake them"));
	else if (signal && chosen && !engine->check->budget &&
		 asprintf(&message, "the program is killed by SIG%s, before any crash",
			  sigabbrev_np(signal)) > 0)
		found_before(engine, signal, program->signal_stack, message);
	if (chosen)
		add_schedules(engine);
}

static uint32_t add_witness(const struct judging *judging)
{
	struct check *check = judging->engine->check;
	const struct worker *worker = judging->worker;
	struct check_witness *witness = new_witness(check);
	uint32_t choices = judging->view ? judging->view->choices : 0;

	*witness = (struct check_witness){
		.crash_event = worker->image.crash,
		.crash_number = worker->crash_number + 1,
		.crash_points = judging->engine->crashes,
		.crash_stack = stack_of_crash(&judging->engine->session->executions.history,
					      worker->image.crash),
		.schedule = schedule_of(judging->engine),
		.latest = judging->task->latest,
		.descending = judging->engine->descending,
		.choices = choices < VIEW_CHOICES ? choices : VIEW_CHOICES,
	};
	for (const struct chain_state *from = judging->task->from; from; from = from->before)
		witness->further_stack[witness->further++] =
			stack_of_crash(&from->leaf->history, from->crash);
	if (judging->view)
		memcpy(witness->taken, judging->view->taken, witness->choices);
	if (judging->outcome) {
		witness->message = symptom_text(judging->outcome);
		witness->deadlocked = judging->outcome->deadlocked;
		memcpy(witness->deadlock, judging->outcome->deadlock, sizeof(witness->deadlock));
		if (judging->outcome->output)
			witness->output = strdup(judging->outcome->output);
	}
	return check->witnesses;
}

static uint32_t deviations(const uint8_t *taken, uint32_t choices)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < choices && i < VIEW_CHOICES; i++)
		count += taken[i] != 0;
	return count;
}

/*
 * Which occurrence is shown: one that makes a difference, before one that does not; then that of
 * the first crash, whoever comes first.
 */
static bool is_better(const struct judging *judging, const struct raw_finding *known,
		      const struct raw_finding *finding)
{
	const struct check_witness *witness =
		known->witness ? &judging->engine->check->witness[known->witness - 1] : NULL;

	if (!witness || known->part != finding->part)
		return !witness || finding->part < known->part;
	/* The fewer values differ from the newest ones, the closer it is to the cause. */
	if (judging->engine->check->settings.exhaustive && judging->view) {
		uint32_t here = deviations(judging->view->taken, judging->view->choices);
		uint32_t there = deviations(witness->taken, witness->choices);

		if (here != there || !witness->crash_number)
			return here < there;
	}
	return witness->schedule == schedule_of(judging->engine) &&
	       judging->worker->crash_number + 1 < witness->crash_number;
}

static void explain_store(const struct judging *judging, const struct raw_finding *finding,
			  struct raw_finding *known)
{
	const struct history *history = &judging->engine->session->executions.history;
	uint32_t flush;

	known->why = finding->why;
	known->flush = finding->flush;
	if (!finding->lost || judging->engine->session->options.model == LINES_EADR)
		return;
	known->why = history_why_uncertain(history, known->address & -(uint64_t)HISTORY_LINE_SIZE,
					   &history->part[finding->lost - 1],
					   judging->worker->image.crash, &flush);
	known->flush = flush == HISTORY_NEVER ? 0 : history->event[flush].stack;
}

static void found(void *context, const struct raw_finding *finding)
{
	const struct judging *judging = context;
	uint32_t number = checkers_report(finding, UINT32_MAX);
	struct raw_finding *known = &judging->engine->session->raw.entry[number];

	if (!number || !is_better(judging, known, finding))
		return;
	known->address = finding->address;
	known->size = finding->size;
	known->part = finding->part;
	known->within = finding->within;
	known->commit = finding->commit;
	explain_store(judging, finding, known);
	memcpy(known->suspect, finding->suspect, sizeof(known->suspect));
	known->witness = add_witness(judging);
}

static bool is_listed(const struct raw_finding *finding, uint32_t stack)
{
	bool listed = !stack || finding->other == stack;

	for (unsigned i = 0; i < RAW_SUSPECTS; i++)
		listed |= finding->suspect[i] == stack;
	return listed;
}

static void add_suspect(struct raw_finding *finding, uint32_t stack)
{
	if (is_listed(finding, stack))
		return;
	if (!finding->other) {
		finding->other = stack;
		return;
	}
	for (unsigned i = 0; i < RAW_SUSPECTS; i++)
		if (!finding->suspect[i]) {
			finding->suspect[i] = stack;
			return;
		}
}

/* Of what a recovery has stored before it crashed as well. */
static void find_suspects_in_leaf(const struct chain_state *state, struct raw_finding *finding)
{
	const struct history *history = &state->leaf->history;

	for (uint32_t i = history->parts; i-- > 0;)
		if (history->part[i].event < state->crash &&
		    history->part[i].settled >= state->crash)
			add_suspect(finding, history->event[history->part[i].event].stack);
}

/* The stores that may be missing: those that were read, the last one first; then the others. */
static void find_suspects(const struct engine *engine, const struct worker *worker,
			  const struct cross_failure_run *run, const struct chain_state *from,
			  struct raw_finding *finding)
{
	const struct history *history = &engine->session->executions.history;
	const struct view_crash *crash = from ? &worker->crash : &worker->execution->crash;
	enum { MOST = 4096 };

	for (uint32_t i = run->absents; i-- > 0;)
		add_suspect(finding, history->event[run->absent[i]].stack);
	for (uint32_t i = run->suspects; i-- > 0;)
		add_suspect(finding, history->event[run->suspect[i]].stack);
	if (from)
		find_suspects_in_leaf(from, finding);
	for (uint32_t i = crash->lines; i-- > 0 && crash->lines - i < MOST;) {
		const struct view_line *line = &crash->line[i];
		const struct history_part *part =
			&history->part[history->line[line->line].first + line->to - 1];
		uint64_t index = (line->address - engine->session->lines.base) / LINES_LINE_SIZE;

		/* What the program calls volatile is never missed. */
		if (!(part->bytes & ~engine->session->lines.line[index].excluded))
			continue;
		add_suspect(finding, history->event[part->event].stack);
	}
}

static void judge_outcome(const struct judging *judging, const struct cross_failure_run *run)
{
	const struct outcome *outcome = judging->outcome;
	struct raw_finding finding = {
		.kind = KIND_CRASH_SYMPTOM,
		.stack = outcome->stack,
		.custom = outcome->symptom,
	};

	find_suspects(judging->engine, judging->worker, run, judging->task->from, &finding);
	found((void *)judging, &finding);
}

/* What follows from how an execution ended, and from what it met. */
static void conclude(struct judging *judging, const struct cross_failure_run *run,
		     const struct outcome *outcome, bool read_something)
{
	struct engine *engine = judging->engine;
	struct worker *worker = judging->worker;
	const struct task *task = judging->task;

	if (outcome->symptom) {
		judging->outcome = outcome;
		judge_outcome(judging, run);
		if (engine->check->settings.stop_on_first)
			engine->check->budget = "--stop-on-first";
	}
	/* Where nothing was stored before the crash there is nothing to read. */
	if (worker->image.stored && worker->execution->lazy && !task->from) {
		engine->check->counts.recoveries++;
		engine->check->counts.vacuous += !read_something;
	}
	if (run->view.choices > task->script_length)
		engine->check->counts.choice_points += run->view.choices - task->script_length;
	add_alternatives(engine, worker, task, &run->view);
	if (run->view.cut)
		session_limit(
			engine->session, UINT32_MAX,
			"some line has more than 256 versions: only the oldest and the newest "
			"were tried");
	if (outcome->leaf && !worker->resumed &&
	    judge_stage(task) < engine->check->settings.crashes)
		add_crashes(engine, worker, task, outcome->leaf);
	if (engine->check->settings.exhaustive || worker->resumed)
		return;
	/* The oldest image is only another one if something was read that it has otherwise. */
	if (task->latest && !task->script_length &&
	    (worker->execution->lazy ? run->suspects != 0 : worker->execution->crash.lines != 0))
		judge_add_task(engine, worker, &(struct task){ .latest = false });
}

static bool judge_read(const struct judging *judging, struct cross_failure_run *run,
		       const struct read_record *read)
{
	cross_failure_judge(&judging->engine->checker, run, read, found, (void *)judging);
	return run->read_something ||
	       (!(read->flags & READ_OUTSIDE) && image_was_stored(&judging->worker->image, read));
}

static void begin_torn(struct engine *engine, struct cross_failure_run *run)
{
	if (engine->checker.torn)
		torn_begin(engine->checker.torn);
	for (unsigned i = 0; i < run->stages; i++)
		if (run->stage[i].torn)
			torn_begin(run->stage[i].torn);
}

void judge(struct engine *engine, struct worker *worker, const struct task *task,
	   const struct read_record *read, uint32_t reads, const struct outcome *outcome)
{
	struct cross_failure_run run;
	struct judging judging = { engine, worker, task, &run.view, NULL };
	bool read_something = false;

	judge_start_view(engine, worker, task, &run);
	begin_torn(engine, &run);
	for (uint32_t i = 0; i < reads; i++)
		read_something |= judge_read(&judging, &run, &read[i]);
	conclude(&judging, &run, outcome, read_something);
}

/* ---- the memo ---- */

void judge_give_up_memo(struct engine *engine, const char *why)
{
	if (engine->memo)
		session_limit(engine->session, UINT32_MAX, why);
	engine->memo = NULL;
}

static uint64_t value_of(struct worker *worker, struct cross_failure_run *run,
			 const struct read_record *read)
{
	struct view_read scratch;

	if (read->flags & READ_OUTSIDE && read->line == READ_STAGE)
		return judge_stage(&worker->running);
	if (read->flags & READ_OUTSIDE)
		return image_asked(&worker->image, read->line);
	return cross_failure_value(run, read, &scratch);
}

/* From this node on, as far as values are known. */
static void follow(struct engine *engine, struct worker *worker, struct cross_failure_run *run,
		   struct path *path, uint32_t node)
{
	while (node) {
		const struct read_record *next = memo_read(engine->memo, node);
		struct read_record read;

		if (!next) {
			path->known = true;
			path->outcome = memo_outcome(engine->memo, node);
			break;
		}
		read = *next;
		read.value = value_of(worker, run, &read);
		path_add(path, &read, node);
		node = memo_next(engine->memo, node, read.value);
	}
}

/*
 * Reads whose values may have changed are looked at; from the first that has, the way is followed
 * anew. Returns the first position that is not as it was.
 */
static uint32_t update(struct engine *engine, struct worker *worker, struct cross_failure_run *run,
		       struct path *path)
{
	const uint32_t *position;
	uint32_t count = path_positions(path, path->changed, path->changes, &position), from;
	const struct path_step *last;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = position[i], node = path->step[at].node;
		struct read_record read = path->step[at].read;
		uint64_t value = value_of(worker, run, &read);

		if (value == read.value)
			continue;
		read.value = value;
		path_cut(path, at);
		path_add(path, &read, node);
		break;
	}
	from = path->length;
	if (path->known)
		return from;
	last = from ? &path->step[from - 1] : NULL;
	follow(engine, worker, run, path,
	       last ? memo_next(engine->memo, last->node, last->read.value)
		    : memo_root(engine->memo));
	return from ? from - 1 : 0;
}

/* A read that has been judged before, and only matters for what comes after it. */
static void pass_step(struct judging *judging, struct cross_failure_run *run,
		      struct path_step *step)
{
	struct torn *torn = judging->engine->checker.torn;

	if (step->writer != PATH_WRITER_UNKNOWN && step->writer != PATH_WRITER_MANY &&
	    torn_is_simple(torn)) {
		if (step->writer != PATH_WRITER_NONE)
			torn_note_read(torn, step->read.line, step->writer - 1);
		return;
	}
	step->writer = cross_failure_judge_torn(&judging->engine->checker, run, &step->read, found,
						judging);
	if (!step->writer)
		step->writer = PATH_WRITER_MANY;
	else if (step->writer == UINT32_MAX)
		step->writer = PATH_WRITER_NONE;
}

/*
 * Only reads of lines that have changed can be judged otherwise than before, and those that are new
 * on this path. With commit variables everything is judged in their light.
 */
static void judge_path(struct engine *engine, struct worker *worker, const struct task *task,
		       struct path *path, uint32_t from)
{
	struct cross_failure_run run;
	struct judging judging = { engine, worker, task, &run.view, NULL };
	const uint32_t *position;
	uint32_t count = path_positions(path, path->changed, path->changes, &position), end;

	if (engine->session->executions.commits)
		from = 0;
	judge_start_view(engine, worker, task, &run);
	begin_torn(engine, &run);
	/* Behind the last one that is to be judged nothing is of interest. */
	end = from < path->length ? path->length : count ? position[count - 1] + 1 : 0;
	for (uint32_t i = 0, next = 0; i < end && i < path->length; i++) {
		struct path_step *step = &path->step[i];
		bool changed = next < count && position[next] == i;

		next += changed;
		if (changed || i >= from) {
			step->writer = PATH_WRITER_UNKNOWN;
			path->read_something |= judge_read(&judging, &run, &step->read);
		} else if (engine->checker.torn) {
			pass_step(&judging, &run, step);
		}
	}
	conclude(&judging, &run, path->outcome, path->read_something);
}

void judge_note_changes(struct worker *worker)
{
	for (unsigned p = 0; p < 2; p++) {
		struct path *path = &worker->path[p];

		for (uint32_t i = 0; i < worker->image.touches; i++)
			path_changed(path, worker->image.touched[i]);
		if (path->changes > PATH_CHANGES_MAX) {
			path_cut(path, 0);
			path->changes = 0;
		}
	}
}

const struct path *judge_known(struct engine *engine, struct worker *worker,
			       const struct task *task)
{
	struct path *path = &worker->path[task->latest];
	struct cross_failure_run run;
	uint32_t from;

	if (!engine->memo)
		return NULL;
	if (task->script_length || task->random || task->from) {
		path = &worker->scripted;
		path_cut(path, 0);
	}
	if (!path->length)
		path->read_something = false;
	judge_start_view(engine, worker, task, &run);
	from = update(engine, worker, &run, path);
	if (path->known)
		judge_path(engine, worker, task, path, from);
	path->changes = 0;
	return path->known ? path : NULL;
}
