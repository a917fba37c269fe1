/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/coverage.h"
#include "report/timeline.h"
#include "report/write.h"

#include <limits.h>
#include <unistd.h>

#include "drive/check.h"
#include "report/inputs.h"
#include "report/output.h"
#include "report/source.h"
#include "report/symbols.h"

static json_t *frames_json(const struct site *site)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < site->frames; i++) {
		const struct frame_info *frame = &site->frame[i];

		json_array_append_new(list,
				      json_pack("{s:o, s:i, s:o, s:o, s:I}", "file",
						json_text(frame->file), "line", (int)frame->line,
						"function", json_text(frame->function), "module",
						json_text(frame->module), "offset",
						(json_int_t)frame->offset));
	}
	return list;
}

static json_t *site_json(const struct site *site)
{
	static const struct frame_info nowhere = { 0 };
	const struct frame_info *frame = site->frames ? site_shown(site) : &nowhere;

	return json_pack("{s:s, s:o, s:i, s:i, s:o, s:o, s:o}", "role", site->role, "file",
			 json_text(frame->file), "line", (int)frame->line, "column",
			 (int)frame->column, "function", json_text(frame->function), "stack",
			 frames_json(site), "thread",
			 site->thread ? json_integer(site->thread) : json_null());
}

static json_t *object_json(const struct finding *f)
{
	if (!f->map)
		return json_null();
	return json_pack("{s:o, s:I, s:o}", "map", json_text(f->map), "offset",
			 (json_int_t)f->offset, "field", json_text(f->field));
}

static json_t *fix_json(const struct finding *f)
{
	if (!f->fix)
		return json_null();
	return json_pack("{s:o, s:o}", "text", json_text(f->fix), "edit",
			 f->edit.what && f->edit.file
				 ? json_pack("{s:s, s:s, s:i, s:o}", "what", f->edit.what, "file",
					     f->edit.file, "line", (int)f->edit.line, "text",
					     json_text(source_line(f->edit.file, f->edit.line)))
				 : json_null());
}

static json_t *crash_json(const struct finding *f)
{
	const struct frame_info *frame = f->crash.frames ? site_shown(&f->crash) : NULL;

	if (!f->witness || !f->witness->crash_number)
		return json_null();
	return json_pack("{s:i, s:i, s:i, s:o, s:i, s:o}", "number", (int)f->witness->crash_number,
			 "of", (int)f->witness->crash_points, "event", (int)f->witness->crash_event,
			 "file", json_text(frame ? frame->file : NULL), "line",
			 frame ? (int)frame->line : 0, "function",
			 json_text(frame ? frame->function : NULL));
}

static json_t *place_json(const struct session *session, uint32_t stack)
{
	const struct frame_info *frame;
	struct site site = { 0 };

	if (!stack)
		return json_null();
	symbols_resolve(session, stack, &site);
	frame = site_shown(&site);
	if (!frame)
		return json_null();
	return json_pack("{s:o, s:i, s:o}", "file", json_text(frame->file), "line",
			 (int)frame->line, "function", json_text(frame->function));
}

/* What the recovery read where there was a choice, and whose store it found. */
static json_t *reads_json(const struct check_witness *witness, const struct check *check)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < witness->reads; i++) {
		const struct check_read *read = &witness->read[i];
		const struct session_file *file = session_file_at(check->session, read->address);
		char value[2 * sizeof(read->value) + 1] = "";

		for (unsigned k = 0; k < sizeof(read->value) && k < read->size; k++)
			sprintf(value + 2 * k, "%02x", read->value[k]);
		json_array_append_new(
			list,
			json_pack("{s:o, s:o, s:o, s:I, s:I, s:s, s:b}", "load",
				  place_json(check->session, read->load), "store",
				  place_json(check->session, read->store), "map",
				  json_text(file ? file->path : NULL), "offset",
				  (json_int_t)(file ? read->address - file->base + file->first : 0),
				  "size", (json_int_t)read->size, "bytes", value, "newest",
				  read->newest));
	}
	return list;
}

static json_t *witness_json(const struct finding *f, const struct check *check)
{
	json_t *choices, *further;

	if (!f->witness)
		return json_null();
	choices = json_array();
	further = json_array();
	for (unsigned i = f->witness->further; i-- > 0;)
		json_array_append_new(further,
				      place_json(check->session, f->witness->further_stack[i]));
	for (uint32_t i = 0; i < f->witness->choices; i++)
		json_array_append_new(choices, json_integer(f->witness->taken[i]));
	return json_pack(
		"{s:s, s:o, s:o, s:b, s:o, s:o, s:o}", "image",
		f->witness->latest ? "latest" : "oldest", "choices", choices, "further_crashes",
		further, "minimal", f->witness->minimal, "reads", reads_json(f->witness, check),
		"output", json_text(f->witness->output), "schedule",
		json_text(f->witness->schedule ? check->schedule[f->witness->schedule - 1] : NULL));
}

/* The field of a structure that a torn store is to. */
static json_t *member_json(const struct finding *f)
{
	if (!f->member)
		return json_null();
	return json_pack("{s:o, s:o, s:o}", "name", json_text(f->member), "type",
			 json_text(f->structure), "file", json_text(f->declared));
}

/* What is known of a race between threads. */
static json_t *race_json(const struct finding *f)
{
	static const struct {
		uint32_t trait;
		const char *name;
	} effects[] = { { RACES_READ_IT, "read" },
			{ RACES_FED_STORE, "pm-store" },
			{ RACES_FED_VALUE, "value" },
			{ RACES_LEFT, "output" } };
	json_t *detectors, *list;

	detectors = json_array();
	list = json_array();
	if (f->race & RACES_OVERLAPPED)
		json_array_append_new(detectors, json_string("pifr"));
	if (f->race & RACES_UNORDERED)
		json_array_append_new(detectors, json_string("hb"));
	for (unsigned i = 0; i < sizeof(effects) / sizeof(*effects); i++)
		if (f->race & effects[i].trait)
			json_array_append_new(list, json_string(effects[i].name));
	return json_pack("{s:o, s:b, s:o, s:b}", "detectors", detectors, "synchronised",
			 !(f->race & RACES_UNSYNCHRONISED), "effects", list, "repaired",
			 f->repaired);
}

static json_t *finding_json(const struct finding *f, const struct check *check)
{
	char address[32], fingerprint[32], cause[16], cause_fingerprint[32];
	json_t *sites = json_array(), *result;

	snprintf(address, sizeof(address), "0x%lx", f->address);
	snprintf(fingerprint, sizeof(fingerprint), "%016lx", f->fingerprint);
	snprintf(cause, sizeof(cause), "C%u", f->cause);
	snprintf(cause_fingerprint, sizeof(cause_fingerprint), "%016lx", f->cause_fingerprint);
	for (unsigned i = 0; i < f->sites; i++)
		json_array_append_new(sites, site_json(&f->site[i]));
	result = json_pack(
		"{s:s, s:s, s:o, s:s, s:s, s:s, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:I, s:s, s:o, "
		"s:o, s:b, s:b}",
		"id", f->id, "kind", kind_info(f->kind)->name, "oracle", json_text(f->oracle),
		"severity", finding_severity(f), "cause", cause, "cause_fingerprint",
		cause_fingerprint, "message", json_text(f->message), "sites", sites, "address",
		f->map ? json_string(address) : json_null(), "size", (json_int_t)f->size, "object",
		object_json(f), "member", member_json(f), "crash_point", crash_json(f), "count",
		(json_int_t)f->count, "fingerprint", fingerprint, "fix", fix_json(f), "witness",
		witness_json(f, check), "suppressed", f->suppressed, "baseline", f->known);
	if (f->kind == KIND_THREAD_RACE)
		json_object_set_new(result, "race", race_json(f));
	if (f->input) {
		json_object_set_new(result, "input", inputs_json(f->input));
		if (f->recovery_input)
			json_object_set_new(result, "recovery_input",
					    inputs_json(f->recovery_input));
		json_object_set_new(result, "paths_before", json_integer(f->paths));
		json_object_set_new(result, "confirmed", json_boolean(!f->unconfirmed));
	}
	return result;
}

static void add_explore_stats(json_t *stats, const struct explore_counts *counts)
{
	static const char *const losses[SYMBOLIC_LOSSES] = {
		[SYMBOLIC_LOST_CALL] = "lost_in_calls",
		[SYMBOLIC_LOST_FLOAT] = "lost_in_floats",
		[SYMBOLIC_LOST_ADDRESS] = "lost_addresses",
		[SYMBOLIC_LOST_SIZE] = "lost_sizes",
		[SYMBOLIC_LOST_SOLVER] = "solver_timeouts",
	};
	const struct {
		const char *name;
		uint64_t value;
	} number[] = {
		{ "paths", counts->paths },
		{ "crashed_paths", counts->crashed },
		{ "timed_out_paths", counts->timed_out },
		{ "states", counts->states },
		{ "states_reexecuted", counts->reexecuted },
		{ "states_dropped", counts->dropped },
		{ "states_waiting", counts->waiting },
		{ "states_live_most", counts->most_live },
		{ "branches", counts->branches },
		{ "solver_queries", counts->queries },
		{ "solver_known", counts->known },
		{ "solver_ms", counts->query_ns / 1000000 },
	};

	for (size_t i = 0; i < sizeof(number) / sizeof(*number); i++)
		json_object_set_new(stats, number[i].name, json_integer(number[i].value));
	for (size_t i = 0; i < SYMBOLIC_LOSSES; i++)
		json_object_set_new(stats, losses[i], json_integer(counts->lost[i]));
}

static json_t *stats_json(const struct result *r)
{
	static const struct check_counts none = { .executions = 1 };
	const struct check_counts *counts = r->check ? &r->check->counts : &none;
	uint64_t events = r->loads + r->stores + r->flushes + r->fences;
	const struct {
		const char *name;
		uint64_t value;
	} number[] = {
		{ "executions", counts->executions },
		{ "crash_points", counts->crash_points },
		{ "memo_hits", counts->memo_hits },
		{ "guard_executions", counts->guard_executions },
		{ "probe_executions", counts->probe_executions },
		{ "vacuous_recoveries", counts->vacuous },
		{ "schedules", counts->schedules },
		{ "schedule_points", counts->schedule_points },
		{ "choice_points", counts->choice_points },
		{ "further_crash_points", counts->further_crash_points },
		{ "events", events },
		{ "loads", r->loads },
		{ "stores", r->stores },
		{ "flushes", r->flushes },
		{ "fences", r->fences },
		{ "threads", r->threads },
		{ "session_bytes", r->session_bytes },
		{ "patched_instructions", r->patched },
		{ "unwound_stacks", r->unwound },
	};
	json_t *stats = json_object();

	for (size_t i = 0; i < sizeof(number) / sizeof(*number); i++)
		json_object_set_new(stats, number[i].name, json_integer(number[i].value));
	if (r->check && r->check->settings.exhaustive)
		json_object_set_new(stats, "eager_states_log2",
				    json_real(counts->eager_states_log2));
	if (r->races) {
		json_object_set_new(stats, "regions", json_integer(r->races->regions));
		json_object_set_new(stats, "regions_lost", json_integer(r->races->lost));
	}
	if (r->explore) {
		add_explore_stats(stats, &r->explore->counts);
		json_object_set_new(stats, "pm_instructions",
				    json_integer(r->explore->pm_instructions));
		json_object_set_new(stats, "pm_instructions_reached",
				    json_integer(r->explore->pm_reached));
	}
	if (r->explored) {
		json_object_update_missing(stats, json_object_get(r->explored, "stats"));
		json_object_set_new(stats, "crashed_histories", json_integer(r->given));
	}
	json_object_set_new(stats, "seconds", json_real(r->seconds));
	return stats;
}

static json_t *pm_files(const struct session *session)
{
	const struct executions *all = &session->executions;
	json_t *list = json_array();

	for (uint32_t i = 0; i < all->files; i++)
		if (all->file[i].pm && all->execution[0].world.backing[i].fd)
			json_array_append_new(list, json_text(all->file[i].path));
	return list;
}

/* What the program was given, for a replay; null if it was much. */
static json_t *input_json(int fd)
{
	enum { MOST = 1 << 16 };
	static uint8_t bytes[MOST];
	ssize_t size = pread(fd, bytes, MOST, 0);

	return size < 0 || size == MOST ? json_null() : hex_json(bytes, (uint32_t)size);
}

/* With what only a result knows: what happened around it, and how it is seen again. */
static json_t *whole_finding(const struct result *r, size_t number)
{
	enum { TIMELINES = 200, FEW = 10, MANY_EVENTS = 1 << 20 };
	size_t most =
		r->check && r->session->executions.history.events > MANY_EVENTS ? FEW : TIMELINES;
	const struct finding *f = &r->finding[number];
	json_t *json = finding_json(f, r->check), *timeline;
	char again[PATH_MAX];

	timeline = number < most ? timeline_json(f, r) : NULL;
	if (timeline)
		json_object_set_new(json, "timeline", timeline);
	if (finding_again(f, r, again, sizeof(again)))
		json_object_set_new(json, "again", json_text(again));
	return json;
}

json_t *result_json(const struct result *r)
{
	json_t *command = json_array(), *limits = json_array(), *findings = json_array();
	json_t *benign = json_array(), *result;

	for (char **p = r->command; p && *p; p++)
		json_array_append_new(command, json_text(*p));
	for (size_t i = 0; i < r->limit_count; i++)
		json_array_append_new(limits, json_text(r->limits[i]));
	for (size_t i = 0; i < r->findings; i++)
		json_array_append_new(findings, whole_finding(r, i));
	for (size_t i = 0; i < r->benigns; i++)
		json_array_append_new(benign, finding_json(&r->benign[i], r->check));
	result = json_pack("{s:i, s:s, s:s, s:o, s:b, s:o, s:{s:o, s:o}, s:o, s:o, s:o}", "version",
			   1, "tool", "perdure", "engine", r->engine, "command", command,
			   "complete", r->complete && !r->limit_count, "limits", limits, "target",
			   "exit", r->exit_status < 0 ? json_null() : json_integer(r->exit_status),
			   "signal", r->signal ? json_integer(r->signal) : json_null(), "stats",
			   stats_json(r), "findings", findings, "benign", benign);
	if (r->options)
		json_object_set_new(result, "options", words_json(r->options));
	if (r->directory)
		json_object_set_new(result, "directory", json_text(r->directory));
	if (r->check)
		json_object_set_new(result, "pm_files", pm_files(r->session));
	if (r->check && r->check->input > 0)
		json_object_set_new(result, "stdin", input_json(r->check->input));
	if (r->explore)
		json_object_set_new(result, "crashes", inputs_crashes_json(r));
	if (r->coverage)
		json_object_set_new(result, "coverage", coverage_json(r->coverage));
	if (r->explored)
		json_object_set(result, "coverage", json_object_get(r->explored, "coverage"));
	if (r->explored)
		json_object_set(result, "crashes", json_object_get(r->explored, "crashes"));
	return result;
}

int write_json(const char *path, const struct result *result)
{
	return json_write_file(path, result_json(result));
}
