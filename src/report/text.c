/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The report for people, like a compiler's: place, kind, message; the source with a caret; how
 * the program came there; what to do.
 */
#include "report/write.h"

#include <limits.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "drive/check.h"
#include "report/inputs.h"
#include "report/source.h"

enum { CONTEXT = 1, INNER_FRAMES = 10, OUTER_FRAMES = 4, PATHS_SHOWN = 3, BLOCKS_PER_KIND = 200 };

struct style {
	const char *error, *warning, *place, *dim, *off;
};
static const struct style plain = { "", "", "", "", "" };
static const struct style coloured = { "\033[1;31m", "\033[1;35m", "\033[1m", "\033[2m",
				       "\033[0m" };

static void print_place(FILE *out, const struct frame_info *frame)
{
	if (frame->file)
		fprintf(out, "%s:%u", frame->file, frame->line);
	else if (frame->module)
		fprintf(out, "%s+0x%lx", frame->module, frame->offset);
	else
		fprintf(out, "0x%lx", frame->offset);
}

/* The line with one before and after it, and a caret below the column. */
static void print_excerpt(FILE *out, const struct frame_info *frame, const struct style *style)
{
	if (!source_line(frame->path, frame->line))
		return;
	for (unsigned n = frame->line > CONTEXT ? frame->line - CONTEXT : 1;
	     n <= frame->line + CONTEXT; n++) {
		const char *text = source_line(frame->path, n);

		if (!text)
			break;
		fprintf(out, "  %s%5u |%s %s\n", style->dim, n, style->off, text);
		if (n != frame->line || !frame->column || frame->column > strlen(text))
			continue;
		fprintf(out, "  %s      |%s ", style->dim, style->off);
		for (unsigned c = 0; c + 1 < frame->column; c++)
			fputc(text[c] == '\t' ? '\t' : ' ', out);
		fprintf(out, "%s^%s\n", style->place, style->off);
	}
}

/* Of long names, what templates were made with is left out: the line tells the rest. */
static void print_function(FILE *out, const char *name)
{
	enum { LONG = 100 };
	static const char operator_word[] = "operator";
	bool shortens = strlen(name) > LONG;
	unsigned depth = 0;

	for (const char *c = name; *c; c++) {
		if (shortens && !depth && strncmp(c, operator_word, strlen(operator_word)) == 0) {
			size_t word = strlen(operator_word);

			word += strspn(c + word, "<>-=");
			fprintf(out, "%.*s", (int)word, c);
			c += word - 1;
		} else if (shortens && *c == '<') {
			if (!depth++)
				fputs("<…>", out);
		} else if (depth && *c == '>') {
			depth--;
		} else if (!depth) {
			fputc(*c, out);
		}
	}
}

/* One line for consecutive frames of one function: the last of them is at the index returned. */
static unsigned print_frame(FILE *out, const struct site *site, unsigned at, bool first)
{
	const struct frame_info *frame = &site->frame[at];
	unsigned last = at;

	while (last + 1 < site->frames &&
	       strcmp(site->frame[last + 1].function, frame->function) == 0)
		last++;
	fprintf(out, "    %s ", first ? "at" : "by");
	print_function(out, frame->function);
	fputs(" (", out);
	print_place(out, frame);
	if (last > at)
		fprintf(out, ", and %u more calls of itself", last - at);
	fprintf(out, ")\n");
	return last;
}

/* The innermost frames, and the last few on the way from main. */
static void print_stack(FILE *out, const struct site *site)
{
	unsigned shown = 0;

	for (unsigned i = 0; i < site->frames; i++) {
		if (shown == INNER_FRAMES && site->frames - i > OUTER_FRAMES + 1) {
			unsigned skipped = site->frames - i - OUTER_FRAMES;

			fprintf(out, "    … %u more …\n", skipped);
			i += skipped;
		}
		i = print_frame(out, site, i, i == 0);
		shown++;
	}
}

static void print_object(FILE *out, const struct finding *f)
{
	if (f->repaired)
		fprintf(out, "  no recovery misses this store (--check-recovery)\n");
	if (!f->map)
		return;
	fprintf(out, "  in PM: %s at offset 0x%lx", f->map, f->offset);
	if (f->field)
		fprintf(out, " (%s)", f->field);
	fputc('\n', out);
}

static void print_heading(FILE *out, const struct finding *f, uint64_t count,
			  const struct style *style)
{
	const char *colour = f->correctness ? style->error : style->warning;
	const struct frame_info *shown = site_shown(&f->site[0]);

	fputs(style->place, out);
	if (shown)
		print_place(out, shown);
	else
		fputs("(unknown place)", out);
	if (shown && shown->column)
		fprintf(out, ":%u", shown->column);
	fprintf(out, ": %s%s%s [%s]: ", colour, kind_info(f->kind)->name, style->off,
		finding_severity(f));
	if (f->oracle)
		fprintf(out, "%s: ", f->oracle);
	fputs(f->message, out);
	if (count > 1)
		fprintf(out, " (%lu times)", count);
	fputc('\n', out);
}

/* Further findings of the same cause: other kinds, other ways to the same store. */
static void print_relatives(FILE *out, const struct result *result, size_t first)
{
	const struct finding *f = &result->finding[first];
	unsigned shown = 0, more = 0;

	for (size_t i = first + 1; i < result->findings; i++) {
		const struct finding *other = &result->finding[i];

		if (other->cause != f->cause || !finding_counts(other))
			continue;
		if (shown++ >= PATHS_SHOWN) {
			more++;
			continue;
		}
		fprintf(out, "  also %s: %s, %lu time%s\n", kind_info(other->kind)->name,
			other->message, other->count, other->count == 1 ? "" : "s");
		print_stack(out, &other->site[0]);
		if (other->fix)
			fprintf(out, "    fix: %s\n", other->fix);
	}
	if (more)
		fprintf(out, "  … and on %u more ways (all are in the JSON report)\n", more);
}

static const char *further_site(const struct finding *f)
{
	return f->kind == KIND_CROSS_FAILURE_SEMANTIC ? "the commit was stored here" : "and";
}

/* The last lines of what a recovery printed. */
static void print_output(FILE *out, const char *output)
{
	enum { LINES_SHOWN = 8 };
	const char *start = output + strlen(output);
	unsigned lines = 0;

	while (start > output && (start[-1] != '\n' || !start[0] || lines++ < LINES_SHOWN - 1))
		start--;
	fprintf(out, "  it printed:\n");
	while (*start) {
		size_t length = strcspn(start, "\n");

		fprintf(out, "    | %.*s\n", (int)length, start);
		start += length + (start[length] == '\n');
	}
}

/* Which crash it was. */
static void print_crash_point(FILE *out, const struct finding *f)
{
	const struct check_witness *witness = f->witness;

	fprintf(out, "  crash point %u of %u", witness->crash_number, witness->crash_points);
	if (f->crash.frames) {
		const struct frame_info *frame = site_shown(&f->crash);

		fputs(", in ", out);
		print_function(out, frame->function);
		fputs(" (", out);
		print_place(out, frame);
		fputc(')', out);
		if (f->crash.shown + 1 < f->crash.frames) {
			fputs(" called from ", out);
			print_function(out, frame[1].function);
			fputs(" (", out);
			print_place(out, frame + 1);
			fputc(')', out);
		}
	}
	fprintf(out, ", with the %s values\n", witness->latest ? "newest" : "oldest");
	for (unsigned i = witness->further; i-- > 0;) {
		const struct frame_info *frame = site_shown(&f->further[i]);

		fprintf(out, "  then a crash in recovery");
		if (frame) {
			fputs(", in ", out);
			print_function(out, frame->function);
			fputs(" (", out);
			print_place(out, frame);
			fputc(')', out);
		}
		fputc('\n', out);
	}
}

static void print_witness(FILE *out, const struct result *result, const struct finding *f)
{
	const struct check_witness *witness = f->witness;

	if (!witness)
		return;
	if (witness->crash_number)
		print_crash_point(out, f);
	if (witness->minimal && !witness->missing)
		fprintf(out,
			"  no store is missing: it fails with all that was stored before the crash\n");
	if (witness->schedule && result->check->settings.schedules.policy != SCHEDULE_ROUND_ROBIN)
		fprintf(out, "  to see it again: --schedule %s\n",
			result->check->schedule[witness->schedule - 1]);
	if (witness->output)
		print_output(out, witness->output);
}

static void print_block(FILE *out, const struct result *result, size_t first,
			const struct style *style)
{
	char again[PATH_MAX];
	const struct finding *f = &result->finding[first];
	uint64_t count = 0;

	for (size_t i = first; i < result->findings; i++)
		if (result->finding[i].cause == f->cause && result->finding[i].kind == f->kind &&
		    finding_counts(&result->finding[i]))
			count += result->finding[i].count;
	print_heading(out, f, count, style);
	if (f->site[0].frames)
		print_excerpt(out, site_shown(&f->site[0]), style);
	print_stack(out, &f->site[0]);
	for (unsigned i = 1; i < f->sites; i++) {
		if (!f->site[i].frames)
			continue;
		fprintf(out, "  %s:\n",
			i + f->waits >= f->sites ? "another thread waits"
			: i == 1 && f->detail    ? f->detail
						 : further_site(f));
		print_stack(out, &f->site[i]);
	}
	print_witness(out, result, f);
	print_object(out, f);
	if (f->folded)
		fprintf(out, "  and at further places: too many to list them all\n");
	if (f->fix)
		fprintf(out, "  fix: %s\n", f->fix);
	if (f->input) {
		fprintf(out, "  input: ");
		inputs_print(out, f->input);
		fprintf(out, "\n");
	}
	if (f->recovery_input) {
		fprintf(out, "  of the recovery: ");
		inputs_print(out, f->recovery_input);
		fputc('\n', out);
	}
	if (finding_again(f, result, again, sizeof(again)))
		fprintf(out, "  again: %s\n", again);
	print_relatives(out, result, first);
	fputc('\n', out);
}

/* Torn stores that only code that verifies data has read. */
static void print_benign(FILE *out, const struct result *result)
{
	enum { SHOWN = 5 };

	for (size_t i = 0; i < result->benigns && i < SHOWN; i++) {
		const struct finding *f = &result->benign[i];
		const struct frame_info *store = f->sites > 1 ? site_shown(&f->site[1]) : NULL;

		fprintf(out, "perdure: benign: %s%s%s",
			f->member ? f->member : "a store that is not atomic",
			f->member ? " in " : "", f->member ? f->structure : "");
		if (store) {
			fprintf(out, ", stored at ");
			print_place(out, store);
		}
		fprintf(out, ", may be torn, but is read only where data is verified\n");
	}
	if (result->benigns > SHOWN)
		fprintf(out, "perdure: benign: %zu more of these are in the JSON report\n",
			result->benigns - SHOWN);
}

static void print_summary(FILE *out, const struct result *result, const struct style *style)
{
	unsigned causes[KIND_COUNT] = { 0 }, total = 0, suppressed = 0, known = 0, unconfirmed = 0;
	char *seen = calloc(result->causes + 1, 1);
	const char *separator = ": ";

	if (!seen)
		abort();
	for (size_t i = 0; i < result->findings; i++) {
		const struct finding *f = &result->finding[i];

		if (finding_counts(f) && !(seen[f->cause] & 1)) {
			seen[f->cause] |= 1;
			causes[f->kind]++;
			total++;
		}
		unconfirmed += f->unconfirmed;
		if (f->suppressed && !(seen[f->cause] & 2)) {
			seen[f->cause] |= 2;
			suppressed++;
		}
		if (f->known && !f->suppressed && !(seen[f->cause] & 4)) {
			seen[f->cause] |= 4;
			known++;
		}
	}
	free(seen);
	if (result->signal)
		fprintf(out, "perdure: the program was ended by signal %d (%s)\n", result->signal,
			strsignal(result->signal));
	else if (result->exit_status > 0)
		fprintf(out, "perdure: the program ended with status %d\n", result->exit_status);
	if (result->explore)
		inputs_print_crashes(out, result);
	for (size_t i = 0; i < result->limit_count; i++)
		fprintf(out, "perdure: limit: %s\n", result->limits[i]);
	if (unconfirmed)
		fprintf(out,
			"perdure: %u finding%s not there when the input was run again, and only in the JSON "
			"report\n",
			unconfirmed, unconfirmed == 1 ? " was" : "s were");
	if (suppressed)
		fprintf(out, "perdure: %u finding%s suppressed\n", suppressed,
			suppressed == 1 ? " is" : "s are");
	if (known)
		fprintf(out, "perdure: %u finding%s known from the baseline\n", known,
			known == 1 ? " is" : "s are");
	if (causes[KIND_CROSS_FAILURE_RACE])
		fprintf(out,
			"perdure: hint: a variable that tells recovery what is valid may be read "
			"at any time if it is atomic, volatile, or declared with perdure_commit_var\n");
	if (result->given)
		fprintf(out,
			"perdure: %lld paths; %u that differ in what they do to PM were crashed everywhere\n",
			json_integer_value(json_object_get(
				json_object_get(result->explored, "stats"), "paths")),
			result->given);
	fprintf(out, "%sperdure: %u finding%s%s", style->place, total, total == 1 ? "" : "s",
		style->off);
	for (int kind = 0; kind < KIND_COUNT; kind++)
		if (causes[kind]) {
			fprintf(out, "%s%u %s", separator, causes[kind], kind_info(kind)->name);
			separator = ", ";
		}
	if (result->explore) {
		fprintf(out,
			" (%lu paths, %u of %u instructions that change PM, %lu states, %lu branches, "
			"%lu questions to the solver, %.1f s)\n",
			result->explore->counts.paths, result->explore->pm_reached,
			result->explore->pm_instructions, result->explore->counts.states,
			result->explore->counts.branches, result->explore->counts.queries,
			result->seconds);
		return;
	}
	if (result->races) {
		fprintf(out, " (%lu regions of %u threads)\n", result->races->regions,
			result->threads);
		return;
	}
	fprintf(out, " (%lu store%s, %lu flush%s, %lu fence%s seen)\n", result->stores,
		result->stores == 1 ? "" : "s", result->flushes, result->flushes == 1 ? "" : "es",
		result->fences, result->fences == 1 ? "" : "s");
	if (result->check)
		fprintf(out,
			"perdure: %lu of %lu crash point%s, %lu executions, %lu memo hits, %.1f s\n",
			result->check->counts.crash_points_done, result->check->counts.crash_points,
			result->check->counts.crash_points == 1 ? "" : "s",
			result->check->counts.executions, result->check->counts.memo_hits,
			result->seconds);
}

int write_text(FILE *out, const struct result *result, bool colour)
{
	const struct style *style = colour ? &coloured : &plain;
	unsigned blocks[KIND_COUNT] = { 0 };
	char *shown = calloc(result->causes + 1, 1);

	if (!shown)
		abort();
	for (size_t i = 0; i < result->findings; i++) {
		const struct finding *f = &result->finding[i];

		if (finding_counts(f) && !shown[f->cause]++ && blocks[f->kind]++ < BLOCKS_PER_KIND)
			print_block(out, result, i, style);
	}
	free(shown);
	for (int kind = 0; kind < KIND_COUNT; kind++)
		if (blocks[kind] > BLOCKS_PER_KIND)
			fprintf(out, "perdure: %u more of kind %s are in the JSON report only\n",
				blocks[kind] - BLOCKS_PER_KIND, kind_info(kind)->name);
	print_benign(out, result);
	print_summary(out, result, style);
	return fflush(out) == EOF || ferror(out) ? -1 : 0;
}

int write_stats(FILE *out, const struct result *result)
{
	fprintf(out,
		"perdure: loads %lu, stores %lu, flushes %lu, fences %lu, threads %u, memory %.1f MiB, "
		"seconds %.2f\n",
		result->loads, result->stores, result->flushes, result->fences, result->threads,
		result->session_bytes / 1048576.0, result->seconds);
	if (result->sites)
		fprintf(out,
			"perdure: %u of %u instructions that may touch PM are patched, %u jumps were "
			"redirected, %lu stacks unwound\n",
			result->patched, result->sites, result->redirected, result->unwound);
	return fflush(out) == EOF ? -1 : 0;
}
