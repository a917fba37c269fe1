/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/options_explore.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 8 }; /* characters of an argument, if nobody says how many */

static const char *add(struct options *options, enum explore_source_kind kind, const char *name,
		       size_t length, long count)
{
	struct explore_settings *explore = &options->explore;
	struct explore_source *source = &explore->source[explore->sources];
	uint32_t before = 0;

	for (uint32_t i = 0; i < explore->sources; i++)
		before += explore->source[i].count;
	if (options->sym_recover)
		return NULL; /* it is the recovery's */
	if (explore->sources == EXPLORE_SOURCES || before + count > EXPLORE_INPUTS)
		return "is too much: 16384 symbolic bytes, in 64 pieces, are possible";
	if (length >= sizeof(source->name))
		return "has too long a name";
	*source = (struct explore_source){ .kind = kind, .count = (uint32_t)count };
	memcpy(source->name, name, length);
	explore->sources++;
	return NULL;
}

const char *explore_set_arguments(struct options *options, const char *value)
{
	const char *x = strchr(value, 'x'), *wrong;
	char *end;
	long count = strtol(value, &end, 10), length = TEXT;

	if (end == value || (*end && end != x) || count < 1 || count > EXPLORE_SOURCES ||
	    (x && options_parse_long(x + 1, 1, EXPLORE_INPUTS, &length)))
		return "must be N, or NxLEN";
	for (long i = 0; i < count; i++) {
		wrong = add(options, EXPLORE_ARGUMENT, "", 0, length);
		if (wrong)
			return wrong;
	}
	return NULL;
}

const char *explore_set_stdin(struct options *options, const char *value)
{
	long count;
	const char *wrong = options_parse_long(value, 1, EXPLORE_INPUTS, &count);

	return wrong ? wrong : add(options, EXPLORE_STDIN, "", 0, count);
}

static const char *add_named(struct options *options, enum explore_source_kind kind,
			     const char *value)
{
	const char *equals = strrchr(value, '='), *wrong;
	long count;

	if (!equals || equals == value)
		return "must be NAME=N";
	wrong = options_parse_long(equals + 1, 1, EXPLORE_INPUTS, &count);
	return wrong ? wrong : add(options, kind, value, (size_t)(equals - value), count);
}

const char *explore_set_file(struct options *options, const char *value)
{
	return add_named(options, EXPLORE_FILE, value);
}

const char *explore_set_variable(struct options *options, const char *value)
{
	return add_named(options, EXPLORE_VARIABLE, value);
}

/* ---- packets ---- */

/* A byte of a packet as the user writes it; false at the end, or if it makes no sense. */
static bool parse_byte(const char **text, uint8_t *byte, bool *is_given)
{
	static const char letters[] = "rnt0\\?", values[] = "\r\n\t\0\\?";
	const char *p = *text, *letter;
	char hex[3] = "";

	*is_given = *p != '?';
	if (*p != '\\') {
		*byte = *p == '?' ? 0 : (uint8_t)*p;
		*text = p + 1;
		return true;
	}
	if (p[1] == 'x' && isxdigit((unsigned char)p[2]) && isxdigit((unsigned char)p[3])) {
		memcpy(hex, p + 2, 2);
		*byte = (uint8_t)strtol(hex, NULL, 16);
		*text = p + 4;
		return true;
	}
	letter = p[1] ? strchr(letters, p[1]) : NULL;
	if (!letter)
		return false;
	*byte = (uint8_t)values[letter - letters];
	*text = p + 2;
	return true;
}

/* Where the bytes of the next packet begin. */
static uint32_t given_used(const struct explore_settings *explore)
{
	uint32_t used = 0;

	for (uint32_t i = 0; i < explore->sources; i++)
		if (explore->source[i].kind == EXPLORE_PACKET)
			used += explore->source[i].count;
	return used;
}

const char *explore_set_packet(struct options *options, const char *value)
{
	struct explore_settings *explore = &options->explore;
	uint32_t first = given_used(explore), count = 0;
	const char *wrong;

	while (*value) {
		if (first + count == EXPLORE_INPUTS)
			return "is too much: 16384 bytes are possible";
		if (!parse_byte(&value, &explore->given[first + count],
				&explore->is_given[first + count]))
			return "has something behind \\ that is none of r n t 0 \\ ? xHH";
		count++;
	}
	if (!count)
		return "must not be empty";
	wrong = add(options, EXPLORE_PACKET, "", 0, count);
	if (!wrong && !options->sym_recover)
		explore->source[explore->sources - 1].first = first;
	return wrong;
}

const char *explore_set_socket(struct options *options, const char *value)
{
	uint32_t first = given_used(&options->explore);
	long count;
	const char *wrong = options_parse_long(value, 1, EXPLORE_INPUTS, &count);

	if (!wrong)
		wrong = add(options, EXPLORE_PACKET, "", 0, count);
	if (!wrong && !options->sym_recover)
		options->explore.source[options->explore.sources - 1].first = first;
	return wrong;
}

const char *explore_set_search(struct options *options, const char *value)
{
	static const char *const names[] = {
		[EXPLORE_PM] = "pm",   [EXPLORE_COVERAGE] = "coverage", [EXPLORE_DFS] = "dfs",
		[EXPLORE_BFS] = "bfs", [EXPLORE_RANDOM] = "random",
	};

	for (uint32_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(value, names[i]) == 0) {
			options->explore.search = i;
			return NULL;
		}
	return "must be pm, coverage, dfs, bfs or random";
}

const char *explore_set_states(struct options *options, const char *value)
{
	long count;
	const char *wrong = options_parse_long(value, 1, EXPLORE_STATES, &count);

	options->explore.max_states = wrong ? 0 : (uint32_t)count;
	return wrong;
}

const char *explore_set_solver_time(struct options *options, const char *value)
{
	long ms;
	const char *wrong = options_parse_long(value, 1, 10000000, &ms);

	options->explore.solver_ms = wrong ? 0 : (uint32_t)ms;
	return wrong;
}

const char *explore_set_inputs(struct options *options, const char *value)
{
	options->inputs = value;
	return NULL;
}

const char *explore_set_shows(struct options *options, const char *value)
{
	(void)value;
	options->explore.shows = true;
	return NULL;
}

const char *explore_set_crash(struct options *options, const char *value)
{
	(void)value;
	options->crash = true;
	return NULL;
}

const char *explore_set_coverage(struct options *options, const char *value)
{
	options->coverage = value;
	return NULL;
}

/* Words so far are those of the program. */
const char *explore_set_sym_recover(struct options *options, const char *value)
{
	(void)value;
	options->sym_recover = true;
	options->program_symbolics = options->symbolics;
	return NULL;
}

const char *explore_set_paths(struct options *options, const char *value)
{
	options->paths = value;
	return NULL;
}
