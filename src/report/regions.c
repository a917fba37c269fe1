/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/regions.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "report/finding.h"
#include "report/symbols.h"

static void place_of(const struct session *session, uint32_t stack, char *text, size_t size)
{
	const struct frame_info *frame;
	struct site site = { 0 };

	symbols_resolve(session, stack, &site);
	frame = site_shown(&site);
	if (!frame)
		snprintf(text, size, "?");
	else if (frame->file)
		snprintf(text, size, "%s:%u+%lx", frame->file, frame->line, frame->offset);
	else
		snprintf(text, size, "%s+%lx", frame->function, frame->offset);
}

static const char *function_of(const struct session *session, uint32_t stack)
{
	struct site site = { 0 };

	symbols_resolve(session, stack, &site);
	return site.frames ? site.frame[site.frames - 1].function : "?";
}

static void write_region(FILE *out, const struct session *session,
			 const struct races_region *region, bool graph)
{
	const char *what = region->stores ? "store" : "load";
	char start[512], access[512];

	place_of(session, region->start, start, sizeof(start));
	place_of(session, region->access, access, sizeof(access));
	if (!graph) {
		fprintf(out, "%s: %s at %s of %s starts at %s%s\n",
			function_of(session, region->access), what, access, region->expression,
			start, region->start == region->access ? ", where it is" : "");
		return;
	}
	fprintf(out, "\t\"%s\" [shape=box];\n\t\"%s\" -> \"%s\" [label=\"%s %s\"];\n", access,
		start, access, what, region->expression);
}

bool regions_write(const struct session *session, const char *path)
{
	const struct session_races *races = &session->races;
	size_t length = strlen(path);
	bool graph = length > 4 && strcmp(path + length - 4, ".dot") == 0, own = strcmp(path, "-");
	FILE *out = own ? fopen(path, "w") : stdout;

	if (!out) {
		fprintf(stderr, "perdure: cannot write %s: %s\n", path, strerror(errno));
		return false;
	}
	if (graph)
		fprintf(out, "digraph regions {\n\trankdir=LR;\n");
	for (uint32_t i = 0; i < races->dumped && i < RACES_REGIONS; i++)
		write_region(out, session, &races->region[i], graph);
	if (graph)
		fprintf(out, "}\n");
	if ((own ? fclose(out) : fflush(out)) != 0) {
		fprintf(stderr, "perdure: cannot write %s: %s\n", path, strerror(errno));
		return false;
	}
	return true;
}
