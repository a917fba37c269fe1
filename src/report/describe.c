/* SPDX-License-Identifier: BSD-3-Clause */
/* What is said about a finding: message, fix, the roles of its places. */
#include "report/collect.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drive/check.h"
#include "report/source.h"
#include "report/types.h"

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

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

static void edit(struct finding *f, const char *what, const struct frame_info *frame)
{
	f->edit.what = what;
	f->edit.file = frame->file;
	f->edit.line = frame->line;
}

/*
 * Where a fence belongs: after the flush, but if that is in a helper, after the helper's call in
 * the function that stores.
 */
static char *fence_fix(struct finding *f)
{
	const struct site *store = &f->site[0], *flush = &f->site[1];
	unsigned at = flush->shown;

	if (!flush->frames || !store->frames)
		return NULL;
	while (at < flush->frames &&
	       strcmp(flush->frame[at].function, site_shown(store)->function) != 0)
		at++;
	/* A flush on another way was for something else on the line: no fix is certain. */
	if (at == flush->frames || !flush->frame[at].file)
		return NULL;
	edit(f, "fence", &flush->frame[at]);
	return format("add a fence after %s:%u", flush->frame[at].file, flush->frame[at].line);
}

static void describe_lost(struct finding *f)
{
	const struct frame_info *frame = site_shown(&f->site[0]);

	if (f->kind == KIND_MISSING_FLUSH) {
		f->message = format("%lu byte%s stored here %s never flushed", f->size,
				    plural(f->size), f->size == 1 ? "is" : "are");
		if (f->field && frame->line) {
			f->fix = format("flush %lu byte%s at `%s` after line %u, then fence",
					f->size, plural(f->size), f->field, frame->line);
			edit(f, "persist", frame);
		}
		return;
	}
	if (f->sites < 2) {
		f->message = format("%lu byte%s streamed here (non-temporal) %s never fenced",
				    f->size, plural(f->size), f->size == 1 ? "is" : "are");
		if (frame && frame->file) {
			f->fix = format("add a fence after %s:%u", frame->file, frame->line);
			edit(f, "fence", frame);
		}
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
	case KIND_TRANSIENT_DATA:
		f->message = format("%lu byte%s stored here %s never flushed, and no recovery "
				    "reads %s",
				    f->size, plural(f->size), f->size == 1 ? "is" : "are",
				    f->size == 1 ? "it" : "them");
		break;
	case KIND_OVERWRITE_UNPERSISTED:
		f->message = strdup("overwritten before it was persistent");
		f->detail = strdup("overwritten here");
		break;
	default:
		break;
	}
}

static void describe_duplicate(struct finding *f, uint64_t again)
{
	f->detail = strdup("logged before, here");
	if (again == f->size)
		f->message = format("the log of this transaction has %s %lu byte%s already",
				    f->size == 1 ? "this" : "these", f->size, plural(f->size));
	else
		f->message =
			format("the log of this transaction has %lu of these %lu bytes already",
			       again, f->size);
}

static void describe_unlogged(struct finding *f, const char *place)
{
	const char *inside = f->sites < 2   ? "outside of any transaction"
			     : f->size == 1 ? "in a transaction that did not log it"
					    : "in a transaction that did not log them";
	const struct frame_info *frame = site_shown(&f->site[0]);

	f->detail = strdup("in the transaction that begins here");
	if (place)
		f->message = format("%lu byte%s of %s, which only transactions may change, %s "
				    "stored %s",
				    f->size, plural(f->size), place_type(place),
				    f->size == 1 ? "is" : "are", inside);
	else
		f->message = format("%lu byte%s stored %s", f->size, plural(f->size), inside);
	if (f->field && frame->line && f->sites > 1) {
		f->fix = format("log %lu byte%s at `%s` before line %u", f->size, plural(f->size),
				f->field, frame->line);
		edit(f, "log", frame);
	}
}

/* The crash is inside of the call of a library that has made the store: nothing behind it helps. */
static bool crashes_in_call(const struct finding *f, const struct site *store)
{
	const struct frame_info *call = site_shown(store), *crash = site_shown(&f->crash);

	return store->shown && f->crash.frames && f->crash.shown && call && crash && call->file &&
	       crash->file && call->line == crash->line && strcmp(call->file, crash->file) == 0;
}

/* Why the store at this site was lost, and what would have kept it. */
static void explain_loss(struct finding *f, unsigned site, enum history_reason why,
			 const char *what)
{
	const struct frame_info *store = f->sites > site ? site_shown(&f->site[site]) : NULL;
	const struct frame_info *flush = f->flush.frames ? site_shown(&f->flush) : NULL;

	if (!store || !store->file)
		return;
	if (why == HISTORY_NOT_FLUSHED) {
		f->detail = format("%s, and never written back", what);
		f->fix = format("write the line back and fence after %s:%u", store->file,
				store->line);
		edit(f, "persist", store);
	} else if (why == HISTORY_NOT_FENCED && !flush) {
		f->detail = format("%s (non-temporal), and not fenced before the crash", what);
		if (crashes_in_call(f, &f->site[site]))
			return;
		f->fix = format("add a fence after %s:%u", store->file, store->line);
		edit(f, "fence", store);
	} else if (why == HISTORY_NOT_FENCED && flush->file) {
		f->detail = format("%s, written back at %s:%u, but not fenced before the crash",
				   what, flush->file, flush->line);
		if (crashes_in_call(f, &f->site[site]))
			return;
		f->fix = format("fence after %s:%u, before anything makes recovery read it",
				flush->file, flush->line);
		edit(f, "fence", flush);
	} else if (why == HISTORY_FLUSHED_LATER && flush && flush->file) {
		f->detail = format("%s, and persistent too late (written back at %s:%u)", what,
				   flush->file, flush->line);
		if (crashes_in_call(f, &f->site[site]))
			return;
		f->fix = format("write the line back and fence after %s:%u, before anything makes "
				"recovery read it",
				store->file, store->line);
	}
}

static void describe_race(struct finding *f, const struct raw_finding *raw)
{
	if (raw->uninitialised) {
		f->message = format("recovery reads %lu byte%s that %s allocated, but never set",
				    f->size, plural(f->size), f->size == 1 ? "was" : "were");
		f->detail = strdup("allocated here");
		return;
	}
	f->weak = raw->part;
	f->message =
		format("recovery reads %lu byte%s that may not be persistent%s", f->size,
		       plural(f->size), f->weak ? " (but would hold the same value anyway)" : "");
	explain_loss(f, 1, raw->why, "stored here");
	if (!f->detail)
		f->detail = strdup("stored here, and not certain to be persistent at the crash");
}

static void describe_semantic(struct finding *f, const struct raw_finding *raw)
{
	f->message =
		format(raw->stale ? "recovery reads %lu byte%s that %s older than the commit "
				    "before the one it has seen"
				  : "recovery reads %lu byte%s that %s written after the commit "
				    "it has seen, or not persisted before it",
		       f->size, plural(f->size),
		       raw->stale     ? f->size == 1 ? "is" : "are"
		       : f->size == 1 ? "was"
				      : "were");
	f->detail = strdup(raw->other ? "stored here" : "the commit was stored here");
}

static void describe_symptom(struct finding *f)
{
	f->message = strdup(f->witness ? f->witness->message : "recovery fails");
	if (f->sites < 2)
		return;
	if (f->witness && f->witness->minimal && f->witness->missing == 1)
		explain_loss(f, 1, f->witness->lost[0].why,
			     "fails if only this store is missing: stored here");
	if (!f->detail)
		f->detail = strdup(f->witness && f->witness->minimal
					   ? f->witness->missing > 1
						     ? "fails if just these stores are missing"
						     : "fails if only this store is missing"
					   : "may be missing after this crash");
}

/* How this file makes stores atomic, if it does. */
enum style { STYLE_BUILTIN, STYLE_C11, STYLE_CPP };

static enum style style_of(const char *path)
{
	const char *dot = path ? strrchr(path, '.') : NULL, *line;
	bool cpp = dot && strchr(dot + 1, 'c') && dot[2];

	for (unsigned i = 1; path && (line = source_line(path, i)); i++) {
		if (strstr(line, "std::") || strstr(line, "class "))
			return STYLE_CPP;
		if (strstr(line, "stdatomic.h") || strstr(line, "atomic_store"))
			return STYLE_C11;
	}
	return cpp ? STYLE_CPP : STYLE_BUILTIN;
}

static char *torn_fix(const struct finding *f, uint64_t size)
{
	const struct frame_info *store = f->sites > 1 ? site_shown(&f->site[1]) : NULL;
	const char *what = f->field ? f->field : f->member, *address = "&";

	/* Only scalars of these sizes can be atomic; a table of virtual functions is nobody's. */
	if (!store || !store->file || !what || (size < 8 && size & (size - 1)) ||
	    (f->member && strncmp(f->member, "_vptr", 5) == 0))
		return NULL;
	if (*what == '*') { /* the address of what a pointer points to */
		what++;
		address = "";
	}
	if (size > 8)
		return format("a store of %lu bytes cannot be atomic: let recovery read first what "
			      "is stored after %s:%u and its flush, or protect it with a checksum",
			      size, store->file, store->line);
	switch (style_of(store->path)) {
	case STYLE_CPP:
		return format("at %s:%u: __atomic_store_n(%s%s, …, __ATOMIC_RELEASE), or make it a "
			      "std::atomic and store with std::memory_order_release",
			      store->file, store->line, address, what);
	case STYLE_C11:
		return format("at %s:%u: atomic_store_explicit(%s%s, …, memory_order_release), "
			      "with an _Atomic type",
			      store->file, store->line, address, what);
	default:
		return format("at %s:%u: __atomic_store_n(%s%s, …, __ATOMIC_RELEASE)", store->file,
			      store->line, address, what);
	}
}

/* The last name in an lvalue: what the source calls the field; null if it ends otherwise. */
static const char *last_name(const char *lvalue)
{
	const char *at = lvalue ? lvalue + strlen(lvalue) : NULL;

	while (at && at > lvalue && (isalnum((unsigned char)at[-1]) || at[-1] == '_'))
		at--;
	return at && *at && !isdigit((unsigned char)*at) ? at : NULL;
}

static void describe_torn(struct finding *f, const struct raw_finding *raw,
			  const struct session *session)
{
	const char *place = raw->place ? session->places.place[raw->place] : NULL;
	const char *named = last_name(f->field);

	if (place && *place_type(place)) {
		f->structure = place_type(place);
		f->member = types_field(session, place_bare_type(place),
					place_offset(place) + raw->within);
		f->declared = types_file(session, place_bare_type(place));
		/* Bit-fields share their bytes: the source knows which one it is. */
		if (named && types_has_member(session, place_bare_type(place), named))
			f->member = named;
	}
	f->weak = raw->part;
	f->benign = raw->custom == RAW_TORN_BENIGN;
	if (f->member)
		f->message = format("`%s` in `%s`%s%s%s: recovery reads a store that is not atomic "
				    "and may be half persistent",
				    f->member, f->structure, f->declared ? " (" : "",
				    f->declared ? f->declared : "", f->declared ? ")" : "");
	else
		f->message = format("recovery reads %lu byte%s of a store that is not atomic and "
				    "may be half persistent",
				    f->size, plural(f->size));
	f->detail = strdup("stored here");
	f->fix = torn_fix(f, f->size + raw->within);
	if (f->fix && f->size + raw->within <= 8)
		edit(f, "atomic", site_shown(&f->site[1]));
}

static void describe_thread_race(struct finding *f, uint32_t traits)
{
	const struct frame_info *store = f->sites > 1 ? site_shown(&f->site[1]) : NULL;

	f->race = traits;
	f->message =
		format("a thread reads %lu byte%s that another one has stored and not yet "
		       "persisted%s%s",
		       f->size, plural(f->size),
		       traits & RACES_UNSYNCHRONISED ? "; nothing orders the two"
						     : ", though both have synchronised",
		       traits & RACES_LEFT        ? ", and tells somebody about it"
		       : traits & RACES_FED_VALUE ? ", and stores it to PM, or to where it points"
		       : traits & RACES_FED_STORE ? ", and stores to PM then"
						  : "");
	f->detail = strdup("stored here");
	f->weak = !(traits & (RACES_FED_STORE | RACES_LEFT));
	if (store && store->file && !(traits & RACES_UNSYNCHRONISED))
		f->fix = format("write the line back and fence after %s:%u, before anything is "
				"released that the reader waits for",
				store->file, store->line);
}

static void describe_custom(struct finding *f, const struct session_custom *custom)
{
	f->message = strdup(custom->message);
	f->oracle = custom->oracle;
	f->correctness = !custom->performance;
	f->site[0].role = custom->role;
	f->site[1].role = custom->other_role;
}

static void set_roles(struct finding *f)
{
	static const char *const roles[KIND_COUNT][2] = {
		[KIND_MISSING_FLUSH] = { "store", "flush" },
		[KIND_MISSING_FENCE] = { "store", "flush" },
		[KIND_REDUNDANT_FLUSH] = { "flush", "flush" },
		[KIND_REDUNDANT_FENCE] = { "fence", "fence" },
		[KIND_OVERWRITE_UNPERSISTED] = { "store", "store" },
		[KIND_STORE_OUTSIDE_TX] = { "store", "tx" },
		[KIND_DUPLICATE_TX_ADD] = { "tx", "tx" },
		[KIND_TRANSIENT_DATA] = { "store", "flush" },
		[KIND_CROSS_FAILURE_RACE] = { "load", "store" },
		[KIND_CROSS_FAILURE_SEMANTIC] = { "load", "store" },
		[KIND_CRASH_SYMPTOM] = { "crash", "store" },
		[KIND_TORN_STORE] = { "load", "store" },
		[KIND_THREAD_RACE] = { "load", "store" },
	};

	for (unsigned i = 0; i < f->sites; i++)
		f->site[i].role = i + f->waits >= f->sites && i ? "lock" : roles[f->kind][i > 0];
}

static void set_field(struct finding *f)
{
	const struct site *store = finding_store(f);
	const struct frame_info *frame = store ? site_shown(store) : NULL;

	if (frame)
		f->field = source_target(frame->path, frame->line, frame->column);
}

void finding_describe(struct finding *f, const struct raw_finding *raw,
		      const struct session *session)
{
	set_roles(f);
	if (f->kind == KIND_CUSTOM)
		describe_custom(f, &session->custom[raw->custom - 1]);
	set_field(f);
	if (f->kind == KIND_STORE_OUTSIDE_TX)
		describe_unlogged(f, raw->place ? session->places.place[raw->place] : NULL);
	else if (f->kind == KIND_DUPLICATE_TX_ADD)
		describe_duplicate(f, raw->part);
	else if (f->kind == KIND_CROSS_FAILURE_RACE)
		describe_race(f, raw);
	else if (f->kind == KIND_CROSS_FAILURE_SEMANTIC)
		describe_semantic(f, raw);
	else if (f->kind == KIND_CRASH_SYMPTOM)
		describe_symptom(f);
	else if (f->kind == KIND_TORN_STORE)
		describe_torn(f, raw, session);
	else if (f->kind == KIND_THREAD_RACE)
		describe_thread_race(f, raw->race);
	else
		describe(f);
}
