/* SPDX-License-Identifier: BSD-3-Clause */
/* From raw findings to findings: named, merged where they read the same, grouped, ranked. */
#include "report/finding.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "report/map.h"
#include "report/source.h"
#include "report/symbols.h"
#include "report/types.h"

enum { FINGERPRINT_FRAMES = 3 };

static char *format(const char *text, ...) __attribute__((format(printf, 1, 2)));
static char *format(const char *text, ...)
{
	char *result = NULL;
	va_list values;

	va_start(values, text);
	if (vasprintf(&result, text, values) < 0)
		abort();
	va_end(values);
	return result;
}

/* ---- what is said about each kind ---- */

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/*
 * Where a fence belongs: after the flush, but if that is in a helper, after the helper's call in
 * the function that stores.
 */
static char *fence_fix(const struct finding *f)
{
	const struct site *store = &f->site[0], *flush = &f->site[1];
	unsigned at = flush->shown;

	if (!flush->frames || !store->frames)
		return NULL;
	for (unsigned i = at + 1; i < flush->frames; i++)
		if (strcmp(flush->frame[i].function, site_shown(store)->function) == 0) {
			at = i;
			break;
		}
	if (!flush->frame[at].file)
		return NULL;
	return format("add a fence after %s:%u", flush->frame[at].file, flush->frame[at].line);
}

static void describe_lost(struct finding *f)
{
	const struct frame_info *frame = site_shown(&f->site[0]);

	if (f->kind == KIND_MISSING_FLUSH) {
		f->message = format("%lu byte%s stored here %s never flushed", f->size,
				    plural(f->size), f->size == 1 ? "is" : "are");
		if (f->field && frame->line)
			f->fix = format("flush %lu byte%s at `%s` after line %u, then fence",
					f->size, plural(f->size), f->field, frame->line);
		return;
	}
	if (f->sites < 2) {
		f->message = format("%lu byte%s streamed here (non-temporal) %s never fenced",
				    f->size, plural(f->size), f->size == 1 ? "is" : "are");
		if (frame && frame->file)
			f->fix = format("add a fence after %s:%u", frame->file, frame->line);
		return;
	}
	f->message = format("%lu byte%s stored here %s flushed, but no fence of the same thread "
			    "follows",
			    f->size, plural(f->size), f->size == 1 ? "is" : "are");
	f->detail = strdup("flushed here, without a fence after it");
	f->fix = fence_fix(f);
}

static void describe(struct finding *f)
{
	switch (f->kind) {
	case KIND_MISSING_FLUSH:
	case KIND_MISSING_FENCE:
		describe_lost(f);
		break;
	case KIND_REDUNDANT_FLUSH:
		f->message = strdup(f->sites > 1 ? "nothing was stored to this line since it was "
						   "last written back"
						 : "nothing was stored to this line at all");
		f->detail = strdup("already written back here");
		break;
	case KIND_REDUNDANT_FENCE:
		f->message = strdup("nothing was stored or flushed since the last fence");
		f->detail = strdup("the fence before");
		break;
	case KIND_OVERWRITE_UNPERSISTED:
		f->message = strdup("overwritten before it was persistent");
		f->detail = strdup("overwritten here");
		break;
	case KIND_DUPLICATE_TX_ADD:
		f->message = format("%lu byte%s logged here %s in the log of this transaction "
				    "already, at least in part",
				    f->size, plural(f->size), f->size == 1 ? "is" : "are");
		f->detail = strdup("logged before, here");
		break;
	default:
		break;
	}
}

static void describe_unlogged(struct finding *f, const struct place *place)
{
	const char *inside = f->sites > 1 ? "in a transaction that did not log them"
					  : "outside of any transaction";
	const struct frame_info *frame = site_shown(&f->site[0]);

	f->detail = strdup("in the transaction that begins here");
	if (place)
		f->message = format("%lu byte%s of %s, which only transactions may change, %s "
				    "stored %s",
				    f->size, plural(f->size), place->type,
				    f->size == 1 ? "is" : "are", inside);
	else
		f->message = format("%lu byte%s stored %s", f->size, plural(f->size), inside);
	if (f->field && frame->line && f->sites > 1)
		f->fix = format("log %lu byte%s at `%s` before line %u", f->size, plural(f->size),
				f->field, frame->line);
}

static void set_roles(struct finding *f)
{
	static const char *const roles[KIND_COUNT][FINDING_SITES] = {
		[KIND_MISSING_FLUSH] = { "store", "flush" },
		[KIND_MISSING_FENCE] = { "store", "flush" },
		[KIND_REDUNDANT_FLUSH] = { "flush", "flush" },
		[KIND_REDUNDANT_FENCE] = { "fence", "fence" },
		[KIND_OVERWRITE_UNPERSISTED] = { "store", "store" },
		[KIND_STORE_OUTSIDE_TX] = { "store", "tx" },
		[KIND_DUPLICATE_TX_ADD] = { "tx", "tx" },
	};

	for (unsigned i = 0; i < f->sites; i++)
		f->site[i].role = roles[f->kind][i];
}

static void set_object(struct finding *f, const struct session *session)
{
	const struct session_file *file = session_file_at(session, f->address);

	if (!file)
		return;
	f->map = strdup(file->path);
	f->offset = f->address - file->base;
}

static void describe_custom(struct finding *f, const struct session_custom *custom)
{
	f->message = strdup(custom->message);
	f->oracle = custom->oracle;
	f->correctness = !custom->performance;
	f->site[0].role = custom->role;
	f->site[1].role = custom->other_role;
}

static bool is_store(const struct finding *f)
{
	return strcmp(f->site[0].role, "store") == 0;
}

static bool is_logging(const struct finding *f)
{
	return strcmp(f->site[0].role, "tx") == 0;
}

static void fill_in(struct finding *f, const struct raw_finding *raw, const struct session *session)
{
	*f = (struct finding){
		.kind = raw->kind,
		.address = raw->address,
		.size = raw->size,
		.count = raw->count,
		.folded = raw->folded,
		.sites = raw->other ? 2 : 1,
		.correctness = kind_info(raw->kind)->correctness,
	};
	symbols_resolve(session, raw->stack, &f->site[0]);
	f->site[0].thread = raw->thread;
	if (raw->other)
		symbols_resolve(session, raw->other, &f->site[1]);
	set_roles(f);
	if (raw->kind == KIND_CUSTOM)
		describe_custom(f, &session->custom[raw->custom - 1]);
	set_object(f, session);
	if (is_store(f) && f->site[0].frames) {
		const struct frame_info *frame = site_shown(&f->site[0]);

		f->field = source_target(frame->path, frame->line, frame->column);
	}
	if (f->kind == KIND_STORE_OUTSIDE_TX)
		describe_unlogged(f, raw->place ? &session->places.place[raw->place] : NULL);
	else
		describe(f);
}

/* ---- identity ---- */

static void hash_text(XXH3_state_t *state, const char *text)
{
	XXH3_64bits_update(state, text ? text : "?", text ? strlen(text) + 1 : 2);
}

static const char *base_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path;
}

static void hash_place(XXH3_state_t *state, const struct site *site, unsigned frames)
{
	for (unsigned i = site->shown; i < site->frames && i < site->shown + frames; i++) {
		const struct frame_info *frame = &site->frame[i];
		char *text = source_normal(frame->path, frame->line);

		hash_text(state, frame->function);
		hash_text(state, base_name(frame->file));
		hash_text(state, text);
		free(text);
	}
}

/* Survives shifted lines: functions, file names and the text of the lines, not their numbers. */
static uint64_t fingerprint(const struct finding *f)
{
	XXH3_state_t *state = XXH3_createState();
	uint64_t hash;

	XXH3_64bits_reset(state);
	hash_text(state, kind_info(f->kind)->name);
	if (f->oracle) {
		hash_text(state, f->oracle);
		hash_text(state, f->message);
	}
	for (unsigned s = 0; s < f->sites; s++)
		hash_place(state, &f->site[s], FINGERPRINT_FRAMES);
	hash = XXH3_64bits_digest(state);
	XXH3_freeState(state);
	return hash;
}

/* The same for a cause: a store whatever happens to it, anything else by kind and callers. */
static uint64_t cause_fingerprint(const struct finding *f)
{
	XXH3_state_t *state = XXH3_createState();
	uint64_t hash;

	XXH3_64bits_reset(state);
	hash_text(state, is_store(f) ? "store" : kind_info(f->kind)->name);
	hash_place(state, &f->site[0], is_store(f) || is_logging(f) ? 1 : FINGERPRINT_FRAMES);
	hash = XXH3_64bits_digest(state);
	XXH3_freeState(state);
	return hash;
}

/* How a frame reads: unrolled loops and inlined copies are different addresses, but the same. */
static void hash_frame(XXH3_state_t *state, const struct frame_info *frame)
{
	hash_text(state, frame->function);
	hash_text(state, frame->file);
	XXH3_64bits_update(state, &frame->line, sizeof(frame->line));
	if (!frame->file)
		XXH3_64bits_update(state, &frame->offset, sizeof(frame->offset));
}

static unsigned occurrences(const struct site *site, unsigned at, bool before)
{
	unsigned count = 0;

	for (unsigned i = 0; i < (before ? at : site->frames); i++)
		count += strcmp(site->frame[i].function, site->frame[at].function) == 0;
	return count;
}

/* A whole stack. However deep a recursion went and by which of its calls, it reads the same. */
static void hash_stack(XXH3_state_t *state, const struct site *site)
{
	for (unsigned i = 0; i < site->frames; i++) {
		if (i == 0 || occurrences(site, i, false) == 1)
			hash_frame(state, &site->frame[i]);
		else if (occurrences(site, i, true) == 0)
			hash_text(state, site->frame[i].function);
	}
}

enum reading {
	READING_PLACE,  /* where it is shown: of whatever kind */
	READING_KIND,   /* kind, and where it is shown */
	READING_PATH,   /* kind, and how the program came there */
	READING_FINDING /* that, and the second site's place */
};

static uint64_t reading(const struct finding *f, enum reading what)
{
	XXH3_state_t *state = XXH3_createState();
	const struct site *first = &f->site[0], *second = &f->site[1];
	uint64_t hash;

	XXH3_64bits_reset(state);
	if (what != READING_PLACE) {
		XXH3_64bits_update(state, &f->kind, sizeof(f->kind));
		hash_text(state, f->oracle ? f->message : "");
	}
	if (what >= READING_PATH)
		hash_stack(state, first);
	else if (first->frames)
		hash_frame(state, site_shown(first));
	if (what == READING_FINDING && f->sites > 1 && second->frames)
		hash_frame(state, &second->frame[0]);
	hash = XXH3_64bits_digest(state);
	XXH3_freeState(state);
	return hash;
}

/* Two lines with the same text in one function: told apart by their order. */
static void separate_fingerprints(struct result *result)
{
	struct map seen = { 0 };

	for (size_t i = 0; i < result->findings; i++)
		while (map_get_or_put(&seen, result->finding[i].fingerprint, i) != i)
			result->finding[i].fingerprint += 0x9e3779b97f4a7c15ull;
	map_free(&seen);
}

static int by_place(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;
	const struct frame_info *p = site_shown(&x->site[0]), *q = site_shown(&y->site[0]);
	int order;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (!p || !q)
		return !!p - !!q;
	order = strcmp(p->file ? p->file : "", q->file ? q->file : "");
	if (!order)
		order = p->line < q->line ? -1 : p->line > q->line;
	return order ? order
		     : (x->fingerprint > y->fingerprint) - (x->fingerprint < y->fingerprint);
}

/* ---- causes and rank ---- */

/*
 * A lost store is one cause however it was reached, and so is a range that is logged twice; a flush
 * or fence, which is often in a helper, is one per way to it.
 */
static uint64_t cause_key(const struct finding *f)
{
	if (is_store(f))
		return reading(f, READING_PLACE);
	return reading(f, is_logging(f) ? READING_KIND : READING_PATH);
}

static void group(struct result *result)
{
	struct map causes = { 0 };

	for (size_t i = 0; i < result->findings; i++) {
		struct finding *f = &result->finding[i];
		size_t cause = map_get_or_put(&causes, cause_key(f), result->causes);

		f->cause = cause + 1;
		if (cause == result->causes)
			result->causes++;
	}
	map_free(&causes);
}

/*
 * Findings by place, so causes come in the order of the source: two with the same text in one
 * function are told apart by that.
 */
static void identify_causes(struct result *result)
{
	uint64_t *of_cause = calloc(result->causes + 1, sizeof(*of_cause));
	struct map seen = { 0 };

	if (!of_cause)
		abort();
	for (size_t i = 0; i < result->findings; i++) {
		struct finding *f = &result->finding[i];
		uint64_t *known = &of_cause[f->cause];

		if (!*known) {
			*known = cause_fingerprint(f);
			while (map_get_or_put(&seen, *known, f->cause) != f->cause)
				*known += 0x9e3779b97f4a7c15ull;
		}
		f->cause_fingerprint = *known;
	}
	map_free(&seen);
	free(of_cause);
}

/* Most severe first, then most frequent; among equals by place, so that reports are stable. */
static int by_rank(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;

	if (x->correctness != y->correctness)
		return x->correctness ? -1 : 1;
	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return by_place(a, b);
}

/* In the order of their first findings. */
static void number_causes(struct result *result)
{
	unsigned *number = calloc(result->causes + 1, sizeof(*number)), next = 0;

	if (!number)
		abort();
	for (size_t i = 0; i < result->findings; i++) {
		unsigned *cause = &number[result->finding[i].cause];

		if (!*cause)
			*cause = ++next;
		result->finding[i].cause = *cause;
	}
	free(number);
}

static void add_counters(struct result *result, const struct session *session)
{
	result->loads = session->loads;
	result->stores = session->stores;
	result->flushes = session->flushes;
	result->fences = session->fences;
	result->threads = session->next_thread;
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

static void add_limits(struct result *result, const struct session *session)
{
	for (uint32_t i = 0; i < session->limits; i++)
		result_limit(result, session->limit[i]);
	if (session->limits_lost)
		result_limit(result, "further limits were left out: too many");
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
			char *text =
				format("--tx-only %s: no such structure in the program's debug "
				       "information",
				       session->options.tx_only_name[i]);

			result_limit(result, text);
			free(text);
		}
	if (session->images == SESSION_IMAGES)
		result_limit(result, "too many processes: their mappings were not told apart");
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

		fill_in(f, &raw->entry[i], session);
		same = map_get_or_put(&known, reading(f, READING_FINDING), result->findings);
		if (same < result->findings)
			result->finding[same].count += f->count;
		else
			result->findings++;
	}
	map_free(&known);
	for (size_t i = 0; i < result->findings; i++)
		result->finding[i].fingerprint = fingerprint(&result->finding[i]);
	qsort(result->finding, result->findings, sizeof(*result->finding), by_place);
	separate_fingerprints(result);
	group(result);
	identify_causes(result);
	qsort(result->finding, result->findings, sizeof(*result->finding), by_rank);
	number_causes(result);
	for (size_t i = 0; i < result->findings; i++)
		snprintf(result->finding[i].id, sizeof(result->finding[i].id), "P%zu", i + 1);
	add_counters(result, session);
	add_limits(result, session);
}
