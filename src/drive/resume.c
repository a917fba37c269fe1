/* SPDX-License-Identifier: BSD-3-Clause */
#include "drive/resume.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drive/engine.h"

enum { VERSION = 1 };
#define SAVE_EVERY 1.0

bool resume_prepare(const char *directory)
{
	if ((mkdir(directory, 0777) == 0 || errno == EEXIST) &&
	    access(directory, R_OK | W_OK | X_OK) == 0)
		return true;
	fprintf(stderr, "perdure: --resume %s: %s\n", directory, strerror(errno));
	return false;
}

/* ---- which exploration it is ---- */

static uint64_t add_bytes(uint64_t hash, const void *bytes, size_t size)
{
	const unsigned char *at = bytes;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ at[i]) * 0x100000001b3ull;
	return hash;
}

static uint64_t add_number(uint64_t hash, uint64_t number)
{
	return add_bytes(hash, &number, sizeof(number));
}

static uint64_t add_file(uint64_t hash, const char *path)
{
	struct stat status;

	hash = add_bytes(hash, path, strlen(path) + 1);
	if (stat(path, &status) < 0)
		return hash;
	hash = add_number(hash, status.st_size);
	hash = add_number(hash, status.st_mtim.tv_sec);
	return add_number(hash, status.st_mtim.tv_nsec);
}

/* A program that was built anew is another one. */
static uint64_t add_command(uint64_t hash, char *const *command)
{
	struct stat status;

	for (; command && *command; command++) {
		bool program = stat(*command, &status) == 0 && S_ISREG(status.st_mode) &&
			       status.st_mode & S_IXUSR;

		hash = program ? add_file(hash, *command)
			       : add_bytes(hash, *command, strlen(*command) + 1);
	}
	return add_number(hash, 0);
}

/* Libraries, the environment, and standard input. */
static uint64_t add_surroundings(uint64_t hash, const struct engine *engine)
{
	const struct session *session = engine->session;
	unsigned char bytes[4096];
	ssize_t got;

	for (uint32_t i = 0; i < session->modules; i++)
		hash = add_file(hash, session->module[i].path);
	for (char **variable = environ; *variable; variable++)
		if (strncmp(*variable, "PERDURE_", 8) != 0 && strncmp(*variable, "_=", 2) != 0)
			hash = add_bytes(hash, *variable, strlen(*variable) + 1);
	for (off_t at = 0;
	     engine->input > 0 && (got = pread(engine->input, bytes, sizeof(bytes), at)) > 0;
	     at += got)
		hash = add_bytes(hash, bytes, got);
	return hash;
}

/* What decides about what is explored, and what comes of it. */
static uint64_t identify(const struct engine *engine)
{
	const struct check_settings *settings = &engine->check->settings;
	const struct session_options *options = &engine->session->options;
	const struct history *history = &engine->session->executions.history;
	uint64_t hash = 0xcbf29ce484222325ull;

	hash = add_command(hash, settings->command);
	hash = add_command(hash, settings->recover);
	hash = add_command(hash, settings->checker);
	hash = add_surroundings(hash, engine);
	hash = add_bytes(hash, settings->bad_exit, sizeof(settings->bad_exit));
	hash = add_number(hash, settings->strict | settings->exhaustive << 1 |
					engine->session->executions.volatile_is_plain << 2 |
					engine->descending << 3);
	hash = add_number(hash, settings->crashes);
	hash = add_number(hash, settings->random);
	hash = add_number(hash, settings->schedules.seed);
	hash = add_number(hash, settings->timeout);
	hash = add_number(hash, options->model);
	hash = add_number(hash, engine->session->library.functions);
	hash = add_number(hash, engine->crashes);
	for (uint32_t i = 0; i < history->events; i++) {
		const struct history_event *event = &history->event[i];

		hash = add_number(hash, event->kind | event->flags << 8 |
						(uint64_t)event->thread << 16 | event->size << 32);
		hash = add_number(hash, event->address);
		if (event->kind == HISTORY_STORE)
			hash = add_bytes(hash, history->data + event->data, event->size);
	}
	return hash;
}

/* ---- bits as text ---- */

static char *bits_text(const uint8_t *bits, size_t count)
{
	size_t bytes = (count + 7) / 8;
	char *text = calloc(2 * bytes + 1, 1);

	if (!text)
		abort();
	for (size_t i = 0; i < bytes; i++) {
		text[2 * i] = "0123456789abcdef"[bits[i] >> 4];
		text[2 * i + 1] = "0123456789abcdef"[bits[i] & 15];
	}
	return text;
}

static bool read_bits(const json_t *text, uint8_t *bits, size_t count)
{
	const char *digits = json_string_value(text);
	size_t bytes = (count + 7) / 8;

	if (!digits || json_string_length(text) != 2 * bytes)
		return false;
	for (size_t i = 0; i < bytes; i++) {
		char pair[] = { digits[2 * i], digits[2 * i + 1], 0 };

		bits[i] |= strtoul(pair, NULL, 16);
	}
	return true;
}

static json_t *bits_json(const uint8_t *bits, size_t count)
{
	char *text = bits_text(bits, count);
	json_t *json = json_string(text);

	free(text);
	return json;
}

/* ---- tasks ---- */

static struct resume_task *new_task(struct resume *resume)
{
	if (resume->tasks == resume->task_room) {
		resume->task_room = resume->task_room ? resume->task_room * 2 : 16;
		resume->task = realloc(resume->task, resume->task_room * sizeof(*resume->task));
		if (!resume->task)
			abort();
	}
	return &resume->task[resume->tasks++];
}

static void add_task(struct resume *resume, uint32_t crash, bool latest, uint64_t random,
		     const uint8_t *script, uint32_t length)
{
	struct resume_task *task = new_task(resume);

	*task = (struct resume_task){ crash, latest, random, length, malloc(length + 1ul) };
	if (!task->script)
		abort();
	memcpy(task->script, script, length);
}

void resume_note_task(struct engine *engine, const struct worker *worker)
{
	if (engine->resume.path && !worker->running.from)
		add_task(&engine->resume, worker->crash_number, worker->running.latest,
			 worker->running.random, worker->running.script,
			 worker->running.script_length);
}

bool resume_is_done(const struct engine *engine, uint32_t crash)
{
	return engine->resume.path && engine->resume.done[crash / 8] >> crash % 8 & 1;
}

void resume_add_tasks(const struct engine *engine, struct worker *worker)
{
	for (uint32_t i = 0; i < engine->resume.tasks; i++) {
		const struct resume_task *kept = &engine->resume.task[i];
		struct task task = { .latest = kept->latest,
				     .random = kept->random,
				     .script_length = kept->script_length };

		if (kept->crash != worker->crash_number)
			continue;
		memcpy(task.script, kept->script, kept->script_length);
		judge_add_task(engine, worker, &task);
	}
}

/* ---- the file ---- */

static const struct {
	const char *name;
	size_t offset;
} numbers[] = {
	{ "executions", offsetof(struct check_counts, executions) },
	{ "memo_hits", offsetof(struct check_counts, memo_hits) },
	{ "guard_executions", offsetof(struct check_counts, guard_executions) },
	{ "vacuous", offsetof(struct check_counts, vacuous) },
	{ "recoveries", offsetof(struct check_counts, recoveries) },
	{ "further_crash_points", offsetof(struct check_counts, further_crash_points) },
	{ "choice_points", offsetof(struct check_counts, choice_points) },
};
enum { NUMBERS = sizeof(numbers) / sizeof(*numbers) };

static uint64_t *number_of(struct check_counts *counts, unsigned i)
{
	return (uint64_t *)((char *)counts + numbers[i].offset);
}

static void read_tasks(struct resume *resume, const json_t *list)
{
	const json_t *entry, *number;
	size_t index, at;

	json_array_foreach(list, index, entry)
	{
		const json_t *script = json_object_get(entry, "choices");
		uint8_t choice[VIEW_CHOICES];

		if (json_array_size(script) > VIEW_CHOICES)
			continue;
		json_array_foreach(script, at, number) choice[at] = json_integer_value(number);
		add_task(resume, json_integer_value(json_object_get(entry, "crash")),
			 json_is_true(json_object_get(entry, "latest")),
			 json_integer_value(json_object_get(entry, "random")), choice,
			 json_array_size(script));
	}
}

static bool read_state(struct engine *engine, const json_t *state)
{
	struct check_counts *counts = &engine->check->counts;
	const json_t *known = json_object_get(state, "counts");

	if (json_integer_value(json_object_get(state, "version")) != VERSION ||
	    !read_bits(json_object_get(state, "done"), engine->resume.done, engine->crashes) ||
	    !read_bits(json_object_get(state, "was_read"), engine->checker.was_read,
		       engine->session->executions.history.events))
		return false;
	for (unsigned i = 0; i < NUMBERS; i++)
		*number_of(counts, i) +=
			json_integer_value(json_object_get(known, numbers[i].name));
	counts->eager_states_log2 = json_real_value(json_object_get(state, "eager_states_log2"));
	engine->seed = json_integer_value(json_object_get(state, "seed"));
	read_tasks(&engine->resume, json_object_get(state, "tasks"));
	return true;
}

void resume_load(struct engine *engine)
{
	const char *directory = engine->check->settings.resume;
	struct resume *resume = &engine->resume;
	json_error_t error;
	json_t *state;

	if (!directory)
		return;
	resume->done = calloc(engine->crashes / 8 + 1, 1);
	if (!resume->done ||
	    asprintf(&resume->path, "%s/%016lx.json", directory, identify(engine)) < 0)
		abort();
	if (access(resume->path, F_OK) < 0)
		return;
	state = json_load_file(resume->path, 0, &error);
	if (!state || !read_state(engine, state)) {
		fprintf(stderr, "perdure: --resume: %s is damaged; starting anew\n", resume->path);
		memset(resume->done, 0, engine->crashes / 8 + 1);
	}
	json_decref(state);
}

static json_t *task_json(uint32_t crash, bool latest, uint64_t random, const uint8_t *script,
			 uint32_t length)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < length; i++)
		json_array_append_new(list, json_integer(script[i]));
	return json_pack("{s:I, s:b, s:I, s:o}", "crash", (json_int_t)crash, "latest", latest,
			 "random", (json_int_t)random, "choices", list);
}

/* Every witness of this history; one of several crashes is found again by exploring them again. */
static json_t *tasks_json(const struct engine *engine, uint8_t *done)
{
	const struct raw_table *raw = &engine->session->raw;
	const struct resume *resume = &engine->resume;
	json_t *list = json_array();

	for (uint32_t i = 0; i < resume->tasks; i++)
		json_array_append_new(list,
				      task_json(resume->task[i].crash, resume->task[i].latest,
						resume->task[i].random, resume->task[i].script,
						resume->task[i].script_length));
	for (uint32_t i = 1; i <= raw->entries; i++) {
		const struct check_witness *witness =
			raw->entry[i].witness ? &engine->check->witness[raw->entry[i].witness - 1]
					      : NULL;
		uint32_t crash = witness ? witness->crash_number - 1 : 0;

		if (!witness || !witness->crash_number || witness->schedule != engine->schedule ||
		    witness->descending != engine->descending)
			continue;
		if (witness->further)
			done[crash / 8] &= ~(1 << crash % 8);
		else
			json_array_append_new(list, task_json(crash, witness->latest, 0,
							      witness->taken, witness->choices));
	}
	return list;
}

static json_t *state_json(struct engine *engine)
{
	uint32_t events = engine->session->executions.history.events;
	json_t *state = json_object(), *counts = json_object();
	uint8_t *done = malloc(engine->crashes / 8 + 1);

	if (!done)
		abort();
	memcpy(done, engine->resume.done, engine->crashes / 8 + 1);
	for (unsigned i = 0; i < NUMBERS; i++)
		json_object_set_new(counts, numbers[i].name,
				    json_integer(*number_of(&engine->check->counts, i)));
	json_object_set_new(state, "version", json_integer(VERSION));
	json_object_set_new(state, "tasks", tasks_json(engine, done));
	json_object_set_new(state, "done", bits_json(done, engine->crashes));
	json_object_set_new(state, "was_read", bits_json(engine->checker.was_read, events));
	json_object_set_new(state, "counts", counts);
	json_object_set_new(state, "seed", json_integer(engine->seed));
	json_object_set_new(state, "eager_states_log2",
			    json_real(engine->check->counts.eager_states_log2));
	free(done);
	return state;
}

/* Whoever reads it finds the old file or the new one, never half of it. */
void resume_save(struct engine *engine)
{
	struct resume *resume = &engine->resume;
	char *unfinished;
	json_t *state;

	if (!resume->path)
		return;
	if (asprintf(&unfinished, "%s.new", resume->path) < 0)
		abort();
	state = state_json(engine);
	if ((json_dump_file(state, unfinished, JSON_COMPACT) < 0 ||
	     rename(unfinished, resume->path) < 0) &&
	    !resume->failed) {
		fprintf(stderr, "perdure: --resume: cannot write %s: %s\n", resume->path,
			strerror(errno));
		resume->failed = true;
	}
	unlink(unfinished);
	json_decref(state);
	free(unfinished);
	resume->saved = target_now();
}

void resume_note_done(struct engine *engine, uint32_t crash)
{
	if (!engine->resume.path)
		return;
	engine->resume.done[crash / 8] |= 1 << crash % 8;
	if (target_now() - engine->resume.saved > SAVE_EVERY)
		resume_save(engine);
}

void resume_end(struct engine *engine)
{
	struct resume *resume = &engine->resume;

	for (uint32_t i = 0; i < resume->tasks; i++)
		free(resume->task[i].script);
	free(resume->task);
	free(resume->done);
	free(resume->path);
	*resume = (struct resume){ 0 };
}
