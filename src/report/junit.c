/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * JUnit XML: one test case for each cause, which fails or, if it does not count, is skipped; and
 * one for each kind of which there is none, which passes.
 */
#include "report/write.h"

#include <stdlib.h>

#include "report/output.h"
#include "drive/check.h"
#include "report/source.h"

/* Text for attributes and contents; what XML cannot hold at all becomes "?". */
static void print_escaped(FILE *out, const char *text)
{
	char *good = utf8_repaired(text);

	for (const char *p = good; *p; p++) {
		unsigned char c = *p;

		if (c == '<')
			fputs("&lt;", out);
		else if (c == '>')
			fputs("&gt;", out);
		else if (c == '&')
			fputs("&amp;", out);
		else if (c == '"')
			fputs("&quot;", out);
		else if (c < 32 && c != '\n' && c != '\t')
			fputc('?', out);
		else
			fputc(c, out);
	}
	free(good);
}

static void print_place(FILE *out, const struct frame_info *frame)
{
	print_escaped(out, frame->file ? frame->file : frame->module ? frame->module : "?");
	if (frame->line)
		fprintf(out, ":%u", frame->line);
	fputs(" in ", out);
	print_escaped(out, frame->function);
}

static void print_stacks(FILE *out, const struct finding *f)
{
	for (unsigned s = 0; s < f->sites; s++) {
		print_escaped(out, f->site[s].role);
		fputs(":\n", out);
		for (unsigned i = 0; i < f->site[s].frames; i++) {
			fputs("  ", out);
			print_place(out, &f->site[s].frame[i]);
			fputc('\n', out);
		}
	}
	if (f->witness) {
		if (f->witness->crash_number)
			fprintf(out, "crash point %u, with the %s values\n",
				f->witness->crash_number, f->witness->latest ? "newest" : "oldest");
		if (f->witness->output) {
			fputs("it printed:\n", out);
			print_escaped(out, f->witness->output);
		}
	}
	if (f->fix) {
		fputs("fix: ", out);
		print_escaped(out, f->fix);
		fputc('\n', out);
	}
}

/* Without a line number: the history of a test must survive shifted lines. */
static void print_name(FILE *out, const struct finding *f, const struct frame_info *shown)
{
	char *text = shown ? source_normal(shown->path, shown->line) : NULL;

	if (!shown) {
		fprintf(out, "%016lx", f->cause_fingerprint);
		return;
	}
	print_escaped(out, shown->file ? shown->file : shown->module ? shown->module : "?");
	fputs(": ", out);
	print_escaped(out, shown->function);
	if (text) {
		fputs(": ", out);
		print_escaped(out, text);
	}
	free(text);
}

static void print_case(FILE *out, const struct result *result, const struct finding *f)
{
	const struct frame_info *shown = site_shown(&f->site[0]);

	fprintf(out, "  <testcase classname=\"perdure.%s.%s\" name=\"", result->engine,
		kind_info(f->kind)->name);
	print_name(out, f, shown);
	fputs("\">\n", out);
	if (finding_counts(f)) {
		fputs("   <failure type=\"", out);
		print_escaped(out, kind_info(f->kind)->name);
		fputs("\" message=\"", out);
		print_escaped(out, f->message);
		fputs("\">", out);
		print_stacks(out, f);
		fputs("</failure>\n", out);
	} else {
		fprintf(out, "   <skipped message=\"%s\"/>\n",
			f->suppressed ? "suppressed" : "known from the baseline");
	}
	fputs("  </testcase>\n", out);
}

/* The first finding of each cause, preferring one that counts. */
static bool stands_for_cause(const struct result *result, size_t at)
{
	const struct finding *f = &result->finding[at];

	for (size_t i = 0; i < result->findings; i++) {
		const struct finding *other = &result->finding[i];

		if (i == at || other->cause != f->cause)
			continue;
		if (finding_counts(other) && !finding_counts(f))
			return false;
		if (i < at && finding_counts(other) == finding_counts(f))
			return false;
	}
	return true;
}

static void print_suite(FILE *out, const struct result *result)
{
	unsigned cases = 0, failures = 0, skipped = 0;
	bool seen[KIND_COUNT] = { false };

	for (size_t i = 0; i < result->findings; i++) {
		const struct finding *f = &result->finding[i];

		seen[f->kind] = true;
		if (!stands_for_cause(result, i))
			continue;
		cases++;
		failures += finding_counts(f);
		skipped += !finding_counts(f);
	}
	for (int kind = 0; kind < KIND_COUNT; kind++) {
		bool looked_for =
			result->enabled & 1u << kind && (kind != KIND_CUSTOM || result->oracles);

		seen[kind] |= !looked_for;
		cases += !seen[kind];
	}
	fprintf(out,
		" <testsuite name=\"perdure %s\" tests=\"%u\" failures=\"%u\" errors=\"0\" "
		"skipped=\"%u\" time=\"%.3f\">\n",
		result->engine, cases, failures, skipped, result->seconds);
	for (int kind = 0; kind < KIND_COUNT; kind++)
		if (!seen[kind])
			fprintf(out, "  <testcase classname=\"perdure.%s\" name=\"%s\"/>\n",
				result->engine, kind_info(kind)->name);
	for (size_t i = 0; i < result->findings; i++)
		if (stands_for_cause(result, i))
			print_case(out, result, &result->finding[i]);
	if (result->limit_count) {
		fputs("  <system-out>", out);
		for (size_t i = 0; i < result->limit_count; i++) {
			fputs("limit: ", out);
			print_escaped(out, result->limits[i]);
			fputc('\n', out);
		}
		fputs("</system-out>\n", out);
	}
	fputs(" </testsuite>\n", out);
}

int write_junit(const char *path, const struct result *result)
{
	FILE *out = output_open(path);

	if (!out)
		return -1;
	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n", out);
	print_suite(out, result);
	fputs("</testsuites>\n", out);
	return output_close(out, 0);
}
