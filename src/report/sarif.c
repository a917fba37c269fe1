/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SARIF 2.1.0, with what code-scanning services look at: rules with help, relative paths,
 * fingerprints, the way from the store to the flush as a code flow, suppressions, baseline state.
 */
#include "report/write.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/output.h"

#define SCHEMA "https://json.schemastore.org/sarif-2.1.0.json"

/* ---- places ---- */

/* A path as a URI: everything but unreserved characters and slashes is escaped. */
static json_t *uri(const char *prefix, const char *path, const char *suffix)
{
	char *text = malloc(strlen(prefix) + strlen(path) * 3 + strlen(suffix) + 1), *out;
	json_t *value;

	if (!text)
		abort();
	out = stpcpy(text, prefix);
	for (; *path; path++) {
		unsigned char c = *path;

		if (isalnum(c) || strchr("-._~/+@", c))
			*out++ = c;
		else
			out += sprintf(out, "%%%02X", c);
	}
	strcpy(out, suffix);
	value = json_string(text);
	free(text);
	return value;
}

/* Files below the current directory are relative to it; others stay absolute. */
static json_t *artifact(const struct frame_info *frame)
{
	const char *path = frame->file ? frame->file : frame->module;

	if (!path)
		path = "unknown";
	if (path[0] == '/')
		return json_pack("{s:o}", "uri", uri("file://", path, ""));
	return json_pack("{s:o, s:s}", "uri", uri("", path, ""), "uriBaseId", "SRCROOT");
}

static json_t *region(const struct frame_info *frame)
{
	json_t *value = json_pack("{s:i}", "startLine", (int)frame->line);

	if (frame->column)
		json_object_set_new(value, "startColumn", json_integer(frame->column));
	return value;
}

static json_t *location(const struct frame_info *frame, const char *message)
{
	json_t *physical = json_pack("{s:o}", "artifactLocation", artifact(frame));
	json_t *value =
		json_pack("{s:o, s:[{s:o, s:s}]}", "physicalLocation", physical, "logicalLocations",
			  "fullyQualifiedName", json_text(frame->function), "kind", "function");

	if (frame->file && frame->line)
		json_object_set_new(physical, "region", region(frame));
	if (message)
		json_object_set_new(value, "message",
				    json_pack("{s:o}", "text", json_text(message)));
	return value;
}

static json_t *shown_location(const struct site *site, const char *message)
{
	static const struct frame_info nowhere = { .function = "?" };
	const struct frame_info *shown = site_shown(site);

	return location(shown ? shown : &nowhere, message);
}

/* ---- how it came to be ---- */

static json_t *step(const struct site *site, const char *message)
{
	json_t *value = json_pack("{s:o, s:s}", "location", shown_location(site, message),
				  "importance", "essential");
	json_t *frames = json_array();

	for (unsigned i = 0; i < site->frames; i++)
		json_array_append_new(
			frames, json_pack("{s:o}", "location", location(&site->frame[i], NULL)));
	json_object_set_new(value, "stack", json_pack("{s:o}", "frames", frames));
	return value;
}

/* The steps in the order in which they happened: the second site first, if it is the earlier one.
 */
static json_t *code_flow(const struct finding *f)
{
	bool later = f->kind == KIND_MISSING_FLUSH || f->kind == KIND_MISSING_FENCE ||
		     f->kind == KIND_OVERWRITE_UNPERSISTED;
	const char *detail = f->detail ? f->detail : f->sites > 1 ? f->site[1].role : NULL;
	json_t *steps = json_array();

	if (f->sites > 1 && !later)
		json_array_append_new(steps, step(&f->site[1], detail));
	json_array_append_new(steps, step(&f->site[0], later ? "stored here" : f->message));
	if (f->sites > 1 && later)
		json_array_append_new(steps, step(&f->site[1], detail));
	if (f->kind == KIND_MISSING_FLUSH)
		json_array_append_new(steps, step(&f->site[0], "no flush follows before the end"));
	if (f->kind == KIND_MISSING_FENCE)
		json_array_append_new(
			steps, step(&f->site[f->sites - 1], "no fence of this thread follows"));
	return json_pack("[{s:[{s:o}]}]", "threadFlows", "locations", steps);
}

/* ---- results ---- */

static void add_related(json_t *result, const struct finding *f)
{
	json_t *related = json_array(), *place;

	for (unsigned i = 1; i < f->sites; i++) {
		place = shown_location(&f->site[i], f->detail ? f->detail : f->site[i].role);
		json_object_set_new(place, "id", json_integer(i));
		json_array_append_new(related, place);
	}
	if (json_array_size(related))
		json_object_set(result, "relatedLocations", related);
	json_decref(related);
}

static int rule_index(const struct result *r, const struct finding *f)
{
	for (unsigned i = 0; f->oracle && i < r->oracles; i++)
		if (strncmp(r->oracle[i].name, f->oracle, strlen(f->oracle)) == 0)
			return KIND_COUNT + i;
	return f->kind;
}

static json_t *sarif_result(const struct result *r, const struct finding *f)
{
	char own[32], cause[32], text[1024], rule[128];
	json_t *value;

	snprintf(own, sizeof(own), "%016lx", f->fingerprint);
	snprintf(cause, sizeof(cause), "%016lx", f->cause_fingerprint);
	snprintf(text, sizeof(text), "%s%s%s", f->message, f->fix ? "; to fix it, " : "",
		 f->fix ? f->fix : "");
	snprintf(rule, sizeof(rule), "%s%s%s", kind_info(f->kind)->name, f->oracle ? "/" : "",
		 f->oracle ? f->oracle : "");
	value = json_pack("{s:o, s:i, s:s, s:{s:o}, s:[o], s:{s:s, s:s}, s:o, s:I}", "ruleId",
			  json_text(rule), "ruleIndex", rule_index(r, f), "level",
			  f->correctness ? "error" : "warning", "message", "text", json_text(text),
			  "locations", shown_location(&f->site[0], NULL), "partialFingerprints",
			  "perdureFinding/v1", own, "perdureCause/v1", cause, "codeFlows",
			  code_flow(f), "occurrenceCount", (json_int_t)f->count);
	add_related(value, f);
	/* An empty list says that it is not suppressed; SARIF wants that for all results or none.
	 */
	json_object_set_new(value, "suppressions",
			    f->suppressed ? json_pack("[{s:s}]", "kind", "external")
					  : json_array());
	if (r->has_baseline)
		json_object_set_new(value, "baselineState",
				    json_string(f->known ? "unchanged" : "new"));
	return value;
}

static json_t *rule_json(const char *id, const char *summary, const char *help, bool correctness,
			 bool enabled)
{
	const char *level = correctness ? "error" : "warning";

	return json_pack("{s:o, s:o, s:{s:o}, s:{s:o}, s:{s:o, s:o}, s:{s:s, s:b}, "
			 "s:{s:[s, s], s:s, s:s}}",
			 "id", json_text(id), "name", json_text(id), "shortDescription", "text",
			 json_text(summary), "fullDescription", "text", json_text(help), "help",
			 "text", json_text(help), "markdown", json_text(help),
			 "defaultConfiguration", "level", level, "enabled", (int)enabled,
			 "properties", "tags", "persistent-memory",
			 correctness ? "correctness" : "performance", "precision", "high",
			 "problem.severity", level);
}

/* The kinds of Perdure, then a rule for each plug-in. */
static json_t *rules_json(const struct result *r)
{
	json_t *rules = json_array();

	for (int kind = 0; kind < KIND_COUNT; kind++) {
		const struct kind_info *info = kind_info(kind);

		json_array_append_new(rules, rule_json(info->name, info->summary, info->help,
						       info->correctness, info->on_by_default));
	}
	for (unsigned i = 0; i < r->oracles; i++) {
		const struct kind_info *info = kind_info(KIND_CUSTOM);
		const char *help = r->oracle[i].help;
		char id[128];

		snprintf(id, sizeof(id), "%s/%s", info->name, r->oracle[i].name);
		json_array_append_new(rules, rule_json(id, help ? help : info->summary,
						       help ? help : info->help, true, true));
	}
	return rules;
}

static json_t *invocation_json(const struct result *r)
{
	json_t *notes = json_array(), *arguments = json_array();

	for (size_t i = 0; i < r->limit_count; i++)
		json_array_append_new(notes, json_pack("{s:s, s:{s:o}}", "level", "note", "message",
						       "text", json_text(r->limits[i])));
	for (char **p = r->command; p && *p; p++)
		json_array_append_new(arguments, json_text(*p));
	return json_pack("{s:b, s:o, s:o}", "executionSuccessful", 1, "arguments", arguments,
			 "toolExecutionNotifications", notes);
}

/* Where relative paths start. */
static json_t *root_json(void)
{
	char directory[4096] = "";

	if (!getcwd(directory, sizeof(directory)))
		strcpy(directory, "/");
	return uri("file://", directory, "/");
}

int write_sarif(const char *path, const struct result *result)
{
	json_t *results = json_array(), *driver, *run;

	for (size_t i = 0; i < result->findings; i++)
		json_array_append_new(results, sarif_result(result, &result->finding[i]));
	driver = json_pack("{s:s, s:s, s:s, s:o}", "name", "Perdure", "version", PERDURE_VERSION,
			   "semanticVersion", PERDURE_VERSION, "rules", rules_json(result));
	run = json_pack("{s:{s:o}, s:{s:s}, s:[o], s:{s:{s:o}}, s:s, s:o}", "tool", "driver",
			driver, "automationDetails", "id", "perdure/", "invocations",
			invocation_json(result), "originalUriBaseIds", "SRCROOT", "uri",
			root_json(), "columnKind", "unicodeCodePoints", "results", results);
	return json_write_file(path, json_pack("{s:s, s:s, s:[o]}", "$schema", SCHEMA, "version",
					       "2.1.0", "runs", run));
}
