/* SPDX-License-Identifier: BSD-3-Clause */
/* From raw findings to findings: named, merged where they read the same, grouped, ranked. */
#include "report/collect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drive/check.h"
#include "model/map.h"
#include "report/inputs.h"
#include "report/symbols.h"
#include "report/types.h"

static void set_object(struct finding *f, const struct session *session)
{
	const struct session_file *file = session_file_at(session, f->address);

	if (!file)
		return;
	f->map = strdup(file->path);
	f->offset = f->address - file->base + file->first;
}

static void add_site(struct finding *f, const struct session *session, uint32_t stack)
{
	if (stack)
		symbols_resolve(session, stack, &f->site[f->sites++]);
}

static void fill_in(struct finding *f, const struct raw_finding *raw, const struct session *session,
		    const struct check *check)
{
	*f = (struct finding){
		.kind = raw->kind,
		.address = raw->address,
		.size = raw->size,
		.count = raw->count,
		.folded = raw->folded,
		.sites = 1,
		.correctness = kind_info(raw->kind)->correctness,
	};
	symbols_resolve(session, raw->stack, &f->site[0]);
	f->site[0].thread = raw->thread;
	if (raw->input && session->explore)
		f->input = &session->explore->input[raw->input - 1];
	else if (raw->input && check && check->settings.given)
		f->input = &check->settings.given->list[raw->input - 1];
	if (raw->recovery && check && check->settings.given)
		f->recovery_input = &check->settings.given->recoveries.list[raw->recovery - 1];
	f->paths = raw->paths;
	f->unconfirmed = session->explore && f->input && f->input->ran && !raw->confirmed;
	if (raw->witness)
		f->witness = &check->witness[raw->witness - 1];
	if (f->witness && f->witness->minimal) {
		for (unsigned i = 0; i < f->witness->missing; i++)
			add_site(f, session, f->witness->lost[i].stack);
	} else {
		add_site(f, session, raw->other);
		for (unsigned i = 0; i < RAW_SUSPECTS; i++)
			add_site(f, session, raw->suspect[i]);
	}
	add_site(f, session, raw->commit);
	if (raw->flush)
		symbols_resolve(session, raw->flush, &f->flush);
	else if (f->witness && f->witness->missing == 1 && f->witness->lost[0].flush)
		symbols_resolve(session, f->witness->lost[0].flush, &f->flush);
	if (f->witness) {
		symbols_resolve(session, f->witness->crash_stack, &f->crash);
		for (unsigned i = 0; i < f->witness->further; i++)
			symbols_resolve(session, f->witness->further_stack[i], &f->further[i]);
		for (uint32_t i = 1; i < f->witness->deadlocked; i++, f->waits++)
			add_site(f, session, f->witness->deadlock[i]);
	}
	set_object(f, session);
	finding_describe(f, raw, session);
}

static void add_counters(struct result *result, const struct session *session)
{
	result->loads = session->loads;
	result->stores = session->stores;
	result->flushes = session->flushes;
	result->fences = session->fences;
	result->threads = session->next_thread;
	result->sites = session->sites;
	result->patched = session->sites_patched;
	result->redirected = session->redirected;
	result->unwound = session->unwound;
	for (uint32_t i = 0; i < SESSION_THREADS && session->thread[i].lines.id; i++) {
		result->loads += session->thread[i].loads;
		result->stores += session->thread[i].stores;
		result->flushes += session->thread[i].flushes;
		result->fences += session->thread[i].fences;
	}
}

void result_limit(struct result *result, const char *text)
{
	result->limits =
		realloc(result->limits, (result->limit_count + 1) * sizeof(*result->limits));
	if (!result->limits)
		abort();
	result->limits[result->limit_count++] = strdup(text);
}

static bool any_found(const struct library_table *table, uint32_t library)
{
	for (uint32_t i = 0; i < table->functions; i++)
		if (table->function[i].library == library && table->function[i].found)
			return true;
	return false;
}

/* The user's own models are there for a reason: one that fits nothing is a mistake. */
static void add_model_limits(struct result *result, const struct library_table *table)
{
	char text[SESSION_PATH];

	for (uint32_t i = 0; i < table->libraries; i++)
		if (!table->library[i].shipped && !any_found(table, i)) {
			snprintf(
				text, sizeof(text),
				"--lib-model: no function of library %.200s is in the program, or they "
				"are static or inlined",
				library_text(table, table->library[i].glob));
			result_limit(result, text);
		}
	for (uint32_t i = 0; i < table->functions; i++) {
		const struct library_function *function = &table->function[i];

		if (function->shipped || function->found || !any_found(table, function->library))
			continue;
		snprintf(
			text, sizeof(text),
			"--lib-model: the function %.200s is not in the program, or is static or inlined",
			library_text(table, function->name));
		result_limit(result, text);
	}
}

static void add_limits(struct result *result, const struct session *session)
{
	add_model_limits(result, &session->library);
	for (uint32_t i = 0; i < session->limits; i++)
		result_limit(result, session->limit[i]);
	if (session->limits_lost)
		result_limit(result, "further limits were left out: too many");
	if (result->explore)
		inputs_note_limits(result);
	if (session->skipped)
		result_limit(result,
			     "a signal handler interrupted the analysis: some of its events were "
			     "not recorded");
	if (session->modules == SESSION_MODULES)
		result_limit(result, "too many loaded objects: some code could not be named");
	if (session->lines.foreign)
		result_limit(result,
			     "PM was written by code that was not built with perdure-cc: what that "
			     "code lost is not known");
	if (session->lines.dropped)
		result_limit(result, "out of memory for stores in flight: events were lost");
	if (session->stacks.full)
		result_limit(result,
			     "too many different call stacks: some are shown without callers");
	for (uint32_t i = 0; i < session->options.tx_only; i++)
		if (!types_exist(session, session->options.tx_only_name[i])) {
			char text[SESSION_PATH + 128];

			snprintf(text, sizeof(text),
				 "--tx-only %s: no such structure in the program's debug "
				 "information",
				 session->options.tx_only_name[i]);
			result_limit(result, text);
		}
	if (session->images == SESSION_IMAGES - EXECUTIONS)
		result_limit(result, "too many processes: their mappings were not told apart");
}

static bool same_place(const struct site *a, const struct site *b)
{
	const struct frame_info *left = site_shown(a), *right = site_shown(b);

	return left && right && left->line == right->line && left->path && right->path &&
	       strcmp(left->path, right->path) == 0;
}

/* Findings about one field have all its stores, and its first load. */
static void merge(struct finding *f, const struct finding *other)
{
	const struct frame_info *load = site_shown(&f->site[0]),
				*earlier = site_shown(&other->site[0]);

	f->count += other->count;
	if (f->kind == KIND_TORN_STORE && load && earlier && earlier->line < load->line)
		f->site[0] = other->site[0];
	for (unsigned i = 1; f->kind == KIND_TORN_STORE && i < other->sites; i++) {
		bool known = f->sites == FINDING_SITES;

		for (unsigned k = 1; k < f->sites; k++)
			known |= same_place(&f->site[k], &other->site[i]);
		if (!known)
			f->site[f->sites++] = other->site[i];
	}
}

static bool is_servant(const struct session *session, uint64_t pc)
{
	for (uint32_t i = 0; i < session->servants; i++)
		if (session->servant[i] == pc)
			return true;
	return false;
}

/*
 * What a trusted library does on its own account is nobody's business, but for the harm that it
 * does; what it was asked to do is the caller's.
 */
static bool is_of_others(const struct raw_finding *raw, const struct session *session)
{
	uint32_t depth, image, outer = 0;
	const uint64_t *pc;

	if (raw->witness || !raw->stack)
		return false;
	pc = stacks_get(&session->stacks, raw->stack, &depth, &image);
	for (; outer < depth; outer++) {
		const struct session_module *module = session_module_at(session, image, pc[outer]);

		if (!module || !module->discreet)
			break;
	}
	return outer && !is_servant(session, pc[outer - 1]);
}

/* What only code that verifies reads, whatever its place. */
static void set_benign_apart(struct result *result)
{
	size_t kept = 0;

	result->benign = calloc(result->findings + 1, sizeof(*result->benign));
	if (!result->benign)
		abort();
	for (size_t i = 0; i < result->findings; i++) {
		if (result->finding[i].benign)
			result->benign[result->benigns++] = result->finding[i];
		else
			result->finding[kept++] = result->finding[i];
	}
	result->findings = kept;
}

/* --check-recovery: a store that no recovery misses, whenever it is lost. */
static void mark_repaired(struct result *result)
{
	for (size_t i = 0; i < result->findings; i++) {
		struct finding *f = &result->finding[i];
		const struct frame_info *store = f->sites > 1 ? site_shown(&f->site[1]) : NULL;
		char place[SESSION_PATH + 32];

		if (f->kind != KIND_THREAD_RACE || !store || !store->file)
			continue;
		snprintf(place, sizeof(place), "%s:%u", store->file, store->line);
		f->repaired = true;
		for (char **missed = result->missed; *missed; missed++)
			f->repaired &= strcmp(*missed, place) != 0;
		f->weak |= f->repaired;
	}
}

void result_collect(struct result *result, struct session *session)
{
	const struct raw_table *raw = &session->raw;
	struct map known = { 0 };

	result->finding = calloc(raw->entries + 1, sizeof(*result->finding));
	if (!result->finding)
		abort();
	for (uint32_t i = 1; i <= raw->entries; i++) {
		struct finding *f = &result->finding[result->findings];
		size_t same;

		if (!raw->entry[i].count || is_of_others(&raw->entry[i], session))
			continue;
		fill_in(f, &raw->entry[i], session, result->check);
		same = map_get_or_put(&known, finding_reading(f), result->findings);
		if (same < result->findings)
			merge(&result->finding[same], f);
		else
			result->findings++;
	}
	if (result->missed)
		mark_repaired(result);
	set_benign_apart(result);
	map_free(&known);
	result_identify(result);
	add_counters(result, session);
	add_limits(result, session);
}

bool finding_again(const struct finding *f, const struct result *result, char *text, size_t size)
{
	bool usual = !result->inputs || strcmp(result->inputs, INPUTS_DIRECTORY) == 0;

	if (f->input && result->inputs)
		snprintf(text, size, "perdure replay%s%s %s", usual ? "" : " --inputs ",
			 usual ? "" : result->inputs, f->id);
	else if (!f->input && !result->races && result->json && strcmp(result->json, "-") != 0 &&
		 strncmp(result->json, "/proc/", 6) != 0) /* a replay's own */
		snprintf(text, size, "perdure replay --from %s %s", result->json, f->id);
	else
		return false;
	return true;
}
