/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/inputs.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/output.h"
#include "report/symbols.h"

/* ---- one input ---- */

/* Texts end at their first zero; files and the like are as long as they are. */
static uint32_t length_of(const struct explore_kept *input, const struct explore_source *source)
{
	const uint8_t *bytes = input->value + source->first;
	const uint8_t *end = memchr(bytes, 0, source->count);

	return end && (source->kind == EXPLORE_ARGUMENT || source->kind == EXPLORE_VARIABLE)
		       ? (uint32_t)(end - bytes)
		       : source->count;
}

static void print_bytes(FILE *out, const uint8_t *bytes, uint32_t count)
{
	enum { MOST = 64 };

	fputc('"', out);
	for (uint32_t i = 0; i < count && i < MOST; i++) {
		if (bytes[i] == '"' || bytes[i] == '\\')
			fprintf(out, "\\%c", bytes[i]);
		else if (isprint(bytes[i]))
			fputc(bytes[i], out);
		else
			fprintf(out, "\\x%02x", bytes[i]);
	}
	fprintf(out, "\"%s", count > MOST ? "…" : "");
}

void inputs_print(FILE *out, const struct explore_kept *input)
{
	static const char *const names[] = {
		[EXPLORE_ARGUMENT] = "argument", [EXPLORE_STDIN] = "standard input",
		[EXPLORE_FILE] = "file",         [EXPLORE_VARIABLE] = "variable",
		[EXPLORE_NAMED] = "symbolic",    [EXPLORE_PACKET] = "packet to",
		[EXPLORE_SCHEDULE] = "schedule",
	};
	unsigned arguments = 0;

	for (uint32_t i = 0; i < input->sources; i++) {
		const struct explore_source *source = &input->source[i];

		fprintf(out, "%s%s", i ? ", " : "", names[source->kind]);
		if (source->kind == EXPLORE_ARGUMENT)
			fprintf(out, " %u", ++arguments);
		else if (*source->name)
			fprintf(out, " %s", source->name);
		fputc(' ', out);
		print_bytes(out, input->value + source->first, length_of(input, source));
	}
}

json_t *hex_json(const uint8_t *bytes, uint32_t count)
{
	char *text = malloc(2ul * count + 1);
	json_t *result;

	if (!text)
		abort();
	for (uint32_t i = 0; i < count; i++)
		sprintf(text + 2ul * i, "%02x", bytes[i]);
	text[2ul * count] = 0;
	result = json_string(text);
	free(text);
	return result;
}

char *inputs_unhex(const char *text, size_t *size)
{
	char *bytes;
	unsigned byte;

	*size = strlen(text) / 2;
	bytes = calloc(*size + 1, 1);
	if (!bytes)
		abort();
	for (size_t i = 0; i < *size && sscanf(text + 2 * i, "%2x", &byte) == 1; i++)
		bytes[i] = (char)byte;
	return bytes;
}

json_t *inputs_json(const struct explore_kept *input)
{
	static const char *const kinds[] = {
		[EXPLORE_ARGUMENT] = "argument", [EXPLORE_STDIN] = "stdin",
		[EXPLORE_FILE] = "file",         [EXPLORE_VARIABLE] = "env",
		[EXPLORE_NAMED] = "named",       [EXPLORE_PACKET] = "packet",
		[EXPLORE_SCHEDULE] = "schedule",
	};
	json_t *list = json_array();

	for (uint32_t i = 0; i < input->sources; i++) {
		const struct explore_source *source = &input->source[i];

		json_array_append_new(list,
				      json_pack("{s:s, s:o, s:o}", "kind", kinds[source->kind],
						"name", json_text(source->name), "hex",
						hex_json(input->value + source->first,
							 length_of(input, source))));
	}
	return list;
}

/* ---- crashes of the program itself ---- */

static const struct explore_kept *input_of(const struct explore *explore, uint32_t number)
{
	return number ? &explore->input[number - 1] : NULL;
}

/* Where it was; null if that is not known. */
static const struct frame_info *place_of(const struct result *result,
					 const struct explore_crash *crash, struct site *site)
{
	if (crash->stack)
		symbols_resolve(result->session, crash->stack, site);
	return site_shown(site);
}

void inputs_print_crashes(FILE *out, const struct result *result)
{
	for (uint32_t i = 0; i < result->explore->crashes; i++) {
		const struct explore_crash *crash = &result->explore->crash[i];
		const struct explore_kept *input = input_of(result->explore, crash->input);
		struct site site = { 0 };
		const struct frame_info *frame = place_of(result, crash, &site);

		fprintf(out, "perdure: %u path%s ended by SIG%s", crash->count,
			crash->count == 1 ? " was" : "s were", sigabbrev_np((int)crash->signal));
		if (frame && frame->file)
			fprintf(out, " at %s:%u (%s)", frame->file, frame->line, frame->function);
		if (input) {
			fprintf(out, ", with ");
			inputs_print(out, input);
		}
		fputc('\n', out);
	}
}

json_t *inputs_crashes_json(const struct result *result)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < result->explore->crashes; i++) {
		const struct explore_crash *crash = &result->explore->crash[i];
		const struct explore_kept *input = input_of(result->explore, crash->input);
		struct site site = { 0 };
		const struct frame_info *frame = place_of(result, crash, &site);

		json_array_append_new(list,
				      json_pack("{s:i, s:i, s:o, s:i, s:o, s:o}", "signal",
						(int)crash->signal, "count", (int)crash->count,
						"file", json_text(frame ? frame->file : NULL),
						"line", frame ? (int)frame->line : 0, "function",
						json_text(frame ? frame->function : NULL), "input",
						input ? inputs_json(input) : json_null()));
	}
	return list;
}

/* ---- what is missing ---- */

static void note(struct result *result, uint64_t count, const char *text)
{
	char line[256];

	if (!count)
		return;
	snprintf(line, sizeof(line), "%lu %s", count, text);
	result_limit(result, line);
}

void inputs_note_limits(struct result *result)
{
	const struct explore_counts *counts = &result->explore->counts;

	note(result, counts->lost[SYMBOLIC_LOST_CALL],
	     "times a symbolic value was fixed because it went to code that was not built with "
	     "--symbolic");
	note(result, counts->lost[SYMBOLIC_LOST_FLOAT],
	     "times one was fixed in floating point, vectors, wide integers, atomics or assembly");
	note(result, counts->lost[SYMBOLIC_LOST_ADDRESS],
	     "times an address was fixed that could be more than 256");
	note(result, counts->lost[SYMBOLIC_LOST_SIZE], "times a size was fixed that could be many");
	note(result, counts->lost[SYMBOLIC_LOST_SOLVER],
	     "questions were not answered in time (--solver-timeout)");
	note(result, counts->dropped, "states were left out: there was no room (--max-states)");
	note(result, counts->timed_out, "paths took too long (--timeout)");
	note(result, counts->too_large, "paths took too much memory (--max-memory)");
	note(result, counts->waiting, "states were still waiting");
}

bool inputs_lost_nothing(const struct explore_counts *counts)
{
	for (unsigned i = 0; i < SYMBOLIC_LOSSES; i++)
		if (counts->lost[i])
			return false;
	return !counts->dropped && !counts->timed_out && !counts->too_large && !counts->waiting;
}

/* ---- files ---- */

bool inputs_save(const struct finding *f, const struct result *result, const char *path,
		 char *const *options, char *const *crash_options)
{
	char here[PATH_MAX], fingerprint[32];
	json_t *json;

	if (!getcwd(here, sizeof(here)))
		return false;
	snprintf(fingerprint, sizeof(fingerprint), "%016lx", f->fingerprint);
	json = json_pack("{s:i, s:s, s:s, s:s, s:o, s:o, s:o}", "version", 1, "kind",
			 kind_info(f->kind)->name, "fingerprint", fingerprint, "directory", here,
			 "options", words_json(options), "command", words_json(result->command),
			 "input", inputs_json(f->input));
	if (crash_options)
		json_object_set_new(json, "crash_options", words_json(crash_options));
	return json_write_file(path, json) == 0;
}
