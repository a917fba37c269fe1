/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/write.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* How many bytes the UTF-8 character at p has; 0 if it is none. */
static size_t utf8_length(const unsigned char *p)
{
	size_t length = *p < 0x80       ? 1
			: *p >> 5 == 6  ? 2
			: *p >> 4 == 14 ? 3
			: *p >> 3 == 30 ? 4
					: 0;

	for (size_t i = 1; i < length; i++)
		if (p[i] >> 6 != 2)
			return 0;
	return length;
}

/* A name that is no UTF-8 must not make the whole report fail: its bad bytes become U+FFFD. */
static json_t *repaired(const char *text)
{
	char *good = malloc(strlen(text) * 3 + 1), *out = good;
	json_t *value;

	if (!good)
		abort();
	while (*text) {
		size_t length = utf8_length((const unsigned char *)text);

		if (length)
			memcpy(out, text, length);
		else
			memcpy(out, "\xef\xbf\xbd", 3);
		out += length ? length : 3;
		text += length ? length : 1;
	}
	*out = 0;
	value = json_string(good);
	free(good);
	return value ? value : json_string("?");
}

static json_t *text_or_null(const char *text)
{
	json_t *value = text ? json_string(text) : json_null();

	return value ? value : repaired(text);
}

static json_t *frames_json(const struct site *site)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < site->frames; i++) {
		const struct frame_info *frame = &site->frame[i];

		json_array_append_new(list,
				      json_pack("{s:o, s:i, s:o, s:o, s:I}", "file",
						text_or_null(frame->file), "line", (int)frame->line,
						"function", text_or_null(frame->function), "module",
						text_or_null(frame->module), "offset",
						(json_int_t)frame->offset));
	}
	return list;
}

static json_t *site_json(const struct site *site)
{
	static const struct frame_info nowhere = { 0 };
	const struct frame_info *frame = site->frames ? site_shown(site) : &nowhere;

	return json_pack("{s:s, s:o, s:i, s:i, s:o, s:o, s:o}", "role", site->role, "file",
			 text_or_null(frame->file), "line", (int)frame->line, "column",
			 (int)frame->column, "function", text_or_null(frame->function), "stack",
			 frames_json(site), "thread",
			 site->thread ? json_integer(site->thread) : json_null());
}

static json_t *object_json(const struct finding *f)
{
	if (!f->map)
		return json_null();
	return json_pack("{s:o, s:I, s:o}", "map", text_or_null(f->map), "offset",
			 (json_int_t)f->offset, "field", text_or_null(f->field));
}

static json_t *fix_json(const struct finding *f)
{
	if (!f->fix)
		return json_null();
	return json_pack("{s:o, s:n}", "text", text_or_null(f->fix), "diff");
}

static json_t *finding_json(const struct finding *f)
{
	char address[32], fingerprint[32], cause[16];
	json_t *sites = json_array();

	snprintf(address, sizeof(address), "0x%lx", f->address);
	snprintf(fingerprint, sizeof(fingerprint), "%016lx", f->fingerprint);
	snprintf(cause, sizeof(cause), "C%u", f->cause);
	for (unsigned i = 0; i < f->sites; i++)
		json_array_append_new(sites, site_json(&f->site[i]));
	return json_pack(
		"{s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:I, s:o, s:n, s:I, s:s, s:o, s:n, s:b}", "id",
		f->id, "kind", kind_info(f->kind)->name, "severity", kind_severity(f->kind),
		"cause", cause, "message", text_or_null(f->message), "sites", sites, "address",
		f->map ? json_string(address) : json_null(), "size", (json_int_t)f->size, "object",
		object_json(f), "crash_point", "count", (json_int_t)f->count, "fingerprint",
		fingerprint, "fix", fix_json(f), "witness", "suppressed", 0);
}

static json_t *stats_json(const struct result *r)
{
	uint64_t events = r->loads + r->stores + r->flushes + r->fences;

	return json_pack("{s:i, s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:i, s:I, s:f}",
			 "executions", 1, "crash_points", 0, "memo_hits", 0, "vacuous_recoveries",
			 0, "events", (json_int_t)events, "loads", (json_int_t)r->loads, "stores",
			 (json_int_t)r->stores, "flushes", (json_int_t)r->flushes, "fences",
			 (json_int_t)r->fences, "threads", (int)r->threads, "session_bytes",
			 (json_int_t)r->session_bytes, "seconds", r->seconds);
}

static json_t *result_json(const struct result *r)
{
	json_t *command = json_array(), *limits = json_array(), *findings = json_array();

	for (char **p = r->command; p && *p; p++)
		json_array_append_new(command, text_or_null(*p));
	for (size_t i = 0; i < r->limit_count; i++)
		json_array_append_new(limits, text_or_null(r->limits[i]));
	for (size_t i = 0; i < r->findings; i++)
		json_array_append_new(findings, finding_json(&r->finding[i]));
	return json_pack("{s:i, s:s, s:s, s:o, s:b, s:o, s:{s:o, s:o}, s:o, s:o}", "version", 1,
			 "tool", "perdure", "engine", r->engine, "command", command, "complete",
			 r->complete && !r->limit_count, "limits", limits, "target", "exit",
			 r->exit_status < 0 ? json_null() : json_integer(r->exit_status), "signal",
			 r->signal ? json_integer(r->signal) : json_null(), "stats", stats_json(r),
			 "findings", findings);
}

int write_json(const char *path, const struct result *result)
{
	FILE *out = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
	json_t *root;
	int status;

	if (!out)
		return -1;
	root = result_json(result);
	status = root ? json_dumpf(root, out, JSON_INDENT(1)) : -1;
	json_decref(root);
	fputc('\n', out);
	if (fflush(out) == EOF || ferror(out))
		status = -1;
	if (out != stdout && fclose(out) == EOF)
		status = -1;
	if (status < 0 && !errno)
		errno = EIO;
	return status;
}
