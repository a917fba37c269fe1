/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which findings are the same: within one report, where equal ones are merged and those of one
 * cause stand together; and from one report to the next, where fingerprints survive shifted lines.
 */
#include "report/collect.h"

#include <stdio.h>
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "model/map.h"
#include "report/source.h"

enum { FINGERPRINT_FRAMES = 3, FINGERPRINT_SITES = 2 };

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
	if (f->kind == KIND_CRASH_SYMPTOM)
		hash_text(state, f->message);
	if (f->member) {
		hash_text(state, f->structure);
		hash_text(state, f->member);
	}
	for (unsigned s = 0; !f->member && s < f->sites && s < FINGERPRINT_SITES; s++)
		hash_place(state, &f->site[s], FINGERPRINT_FRAMES);
	hash = XXH3_64bits_digest(state);
	XXH3_freeState(state);
	return hash;
}

/* The same for a cause: a store whatever happens to it, anything else by kind and callers. */
static uint64_t cause_fingerprint(const struct finding *f)
{
	XXH3_state_t *state = XXH3_createState();
	const struct site *store = finding_store(f);
	uint64_t hash;

	XXH3_64bits_reset(state);
	hash_text(state, store ? "store" : kind_info(f->kind)->name);
	hash_place(state, store ? store : &f->site[0],
		   store || finding_is_logging(f) ? 1 : FINGERPRINT_FRAMES);
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
	READING_PLACE,  /* where its store is shown: of whatever kind */
	READING_KIND,   /* kind, and where it is shown */
	READING_PATH,   /* kind, and how the program came there */
	READING_FINDING /* that, and the second site's place */
};

static uint64_t reading(const struct finding *f, enum reading what)
{
	XXH3_state_t *state = XXH3_createState();
	const struct site *store = what == READING_PLACE ? finding_store(f) : NULL;
	const struct site *first = store ? store : &f->site[0], *second = &f->site[1];
	static const struct site nowhere;
	uint64_t hash;

	XXH3_64bits_reset(state);
	if (what == READING_FINDING && f->member) { /* of a field, wherever it is stored */
		hash_text(state, f->benign ? "benign" : "torn");
		hash_text(state, f->structure);
		hash_text(state, f->member);
		first = second = &nowhere;
	}
	if (what != READING_PLACE) {
		XXH3_64bits_update(state, &f->kind, sizeof(f->kind));
		hash_text(state, f->oracle || f->kind == KIND_CRASH_SYMPTOM ? f->message : "");
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

static int compare_sites(const struct site *a, const struct site *b)
{
	const struct frame_info *p = site_shown(a), *q = site_shown(b);
	int order;

	if (!p || !q)
		return !!p - !!q;
	order = strcmp(p->file ? p->file : "", q->file ? q->file : "");
	if (!order)
		order = p->line < q->line ? -1 : p->line > q->line;
	return order ? order : p->column < q->column ? -1 : p->column > q->column;
}

static int by_place(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;
	int order = 0;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	for (unsigned i = 0; i < 2 && !order; i++)
		order = compare_sites(&x->site[i], &y->site[i]);
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
	if (finding_store(f))
		return reading(f, READING_PLACE);
	return reading(f, finding_is_logging(f) ? READING_KIND : READING_PATH);
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

/* What decides where a cause is shown. */
struct weight {
	bool correctness;
	bool weak;      /* all of its findings are */
	uint64_t count; /* of its most frequent finding */
	size_t first;   /* by place, so that reports are stable */
};
static struct weight *weights; /* of the result that is being ranked */

/* Which finding of a cause says most: what goes wrong, before what was forgotten.
 */
static unsigned strength(enum finding_kind kind)
{
	static const uint8_t strongest[] = { KIND_CRASH_SYMPTOM, KIND_CROSS_FAILURE_RACE,
					     KIND_CROSS_FAILURE_SEMANTIC, KIND_TORN_STORE,
					     KIND_STORE_OUTSIDE_TX };

	for (unsigned i = 0; i < sizeof(strongest); i++)
		if (strongest[i] == kind)
			return i;
	return sizeof(strongest) + kind;
}

/* Most severe causes first, then most frequent; the findings of a cause stay together. */
static int by_rank(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;
	const struct weight *p = &weights[x->cause], *q = &weights[y->cause];

	if (p->correctness != q->correctness)
		return p->correctness ? -1 : 1;
	if (p->weak != q->weak)
		return p->weak ? 1 : -1;
	if (p->count != q->count)
		return p->count > q->count ? -1 : 1;
	if (p->first != q->first)
		return p->first < q->first ? -1 : 1;
	if (strength(x->kind) != strength(y->kind))
		return strength(x->kind) < strength(y->kind) ? -1 : 1;
	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return by_place(a, b);
}

static void rank(struct result *result)
{
	weights = calloc(result->causes + 1, sizeof(*weights));
	if (!weights)
		abort();
	for (size_t i = result->findings; i-- > 0;) {
		const struct finding *f = &result->finding[i];
		struct weight *weight = &weights[f->cause];

		weight->weak = f->weak && (weight->weak || !weight->count);
		weight->correctness |= f->correctness;
		weight->count = f->count > weight->count ? f->count : weight->count;
		weight->first = i;
	}
	qsort(result->finding, result->findings, sizeof(*result->finding), by_rank);
	free(weights);
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

uint64_t finding_reading(const struct finding *f)
{
	return reading(f, READING_FINDING);
}

void result_identify(struct result *result)
{
	for (size_t i = 0; i < result->findings; i++)
		result->finding[i].fingerprint = fingerprint(&result->finding[i]);
	qsort(result->finding, result->findings, sizeof(*result->finding), by_place);
	separate_fingerprints(result);
	group(result);
	identify_causes(result);
	rank(result);
	number_causes(result);
	for (size_t i = 0; i < result->findings; i++)
		snprintf(result->finding[i].id, sizeof(result->finding[i].id), "P%zu", i + 1);
}
