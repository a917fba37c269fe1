/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/coverage.h"

#include <stdio.h>
#include <string.h>

static const char *state_of(const struct coverage *coverage, const struct coverage_place *place)
{
	return place->reached ? "reached" : coverage->complete ? "never" : "not reached";
}

json_t *coverage_json(const struct coverage *coverage)
{
	json_t *list = json_array();

	for (size_t i = 0; i < coverage->places; i++) {
		const struct coverage_place *place = &coverage->place[i];
		json_t *guards = json_array();

		for (unsigned g = 0; !place->reached && g < place->guards; g++) {
			const struct coverage_guard *guard = &place->guard[g];

			json_array_append_new(guards,
					      json_pack("{s:s, s:i, s:i, s:b, s:i, s:i}", "file",
							guard->file, "line", (int)guard->line,
							"column", (int)guard->column, "wanted",
							(int)guard->way, "taken", (int)guard->taken,
							"not_taken", (int)guard->not_taken));
		}
		json_array_append_new(list, json_pack("{s:s, s:i, s:i, s:s, s:o}", "file",
						      place->file, "line", (int)place->line,
						      "column", (int)place->column, "state",
						      state_of(coverage, place), "guards", guards));
	}
	return list;
}

static void write_guard(FILE *out, const struct coverage_guard *guard)
{
	uint32_t asked = guard->taken + guard->not_taken;

	fprintf(out, "    needs the condition at %s:%u:%u to be %s", guard->file, guard->line,
		guard->column, guard->way ? "true" : "false");
	if (!asked)
		fprintf(out, "; it was not asked, or does not depend on the input\n");
	else if (!guard->taken)
		fprintf(out, "; it depends on the input, and never was in %u decisions\n", asked);
	else
		fprintf(out, "; it was in %u of %u decisions\n", guard->taken, asked);
}

static void write_text(FILE *out, const struct coverage *coverage)
{
	size_t reached = 0;

	for (size_t i = 0; i < coverage->places; i++)
		reached += coverage->place[i].reached;
	fprintf(out, "%zu of %zu instructions that may change PM were reached\n", reached,
		coverage->places);
	for (size_t i = 0; i < coverage->places; i++) {
		const struct coverage_place *place = &coverage->place[i];

		fprintf(out, "%s:%u:%u: %s\n", place->file, place->line, place->column,
			place->reached       ? "reached"
			: coverage->complete ? "changes no PM on any path with these inputs"
					     : "not reached");
		for (unsigned g = 0; !place->reached && g < place->guards; g++)
			write_guard(out, &place->guard[g]);
	}
}

int coverage_write(const char *path, const struct coverage *coverage)
{
	FILE *out = strcmp(path, "-") == 0 ? stdout : fopen(path, "we");

	if (!out)
		return -1;
	write_text(out, coverage);
	if (out == stdout)
		return fflush(out);
	return fclose(out);
}
