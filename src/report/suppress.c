/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/suppress.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "report/output.h"

enum pattern_kind { FUNCTION, OBJECT, SOURCE, ANY_FRAMES };

struct pattern {
	enum pattern_kind kind;
	char *glob;    /* null for ANY_FRAMES */
	unsigned line; /* SOURCE: 0 is any */
};

struct block {
	char *name, *kind;    /* the kind is a glob */
	unsigned used;        /* findings left out */
	bool exact, by_cause; /* a fingerprint is given, and is all that counts */
	uint64_t fingerprint;
	struct pattern *pattern;
	size_t patterns;
	struct block *next;
};
static struct block *blocks;

/* ---- reading ---- */

struct reader {
	FILE *file;
	const char *path;
	unsigned line;
	char *text; /* of the current line, without spaces around it */
	char *memory;
	size_t room;
	char *error;
	size_t error_size;
};

static int fail(const struct reader *r, const char *text, ...)
	__attribute__((format(printf, 2, 3)));
static int fail(const struct reader *r, const char *text, ...)
{
	int length = snprintf(r->error, r->error_size, "%s:%u: ", r->path, r->line);
	va_list values;

	va_start(values, text);
	if (length > 0 && (size_t)length < r->error_size)
		vsnprintf(r->error + length, r->error_size - length, text, values);
	va_end(values);
	return -1;
}

/* The next line that is neither empty nor a comment; false at the end. */
static bool next_line(struct reader *r)
{
	while (getline(&r->memory, &r->room, r->file) >= 0) {
		size_t length;

		r->line++;
		r->text = r->memory;
		while (isspace((unsigned char)*r->text))
			r->text++;
		length = strlen(r->text);
		while (length && isspace((unsigned char)r->text[length - 1]))
			r->text[--length] = 0;
		if (*r->text && *r->text != '#')
			return true;
	}
	return false;
}

static char *copy(const char *text)
{
	char *result = strdup(text);

	if (!result)
		abort();
	return result;
}

static struct pattern *add_pattern(struct block *block)
{
	block->pattern = realloc(block->pattern, (block->patterns + 1) * sizeof(*block->pattern));
	if (!block->pattern)
		abort();
	block->pattern[block->patterns] = (struct pattern){ 0 };
	return &block->pattern[block->patterns++];
}

/* "file.c:12" */
static void split_line_number(struct pattern *pattern)
{
	char *colon = strrchr(pattern->glob, ':');

	if (!colon || !colon[1] || strspn(colon + 1, "0123456789") != strlen(colon + 1))
		return;
	pattern->line = atoi(colon + 1);
	*colon = 0;
}

static int read_pattern(struct reader *r, struct block *block)
{
	static const struct {
		const char *word;
		enum pattern_kind kind;
	} words[] = { { "fun:", FUNCTION }, { "obj:", OBJECT }, { "src:", SOURCE } };
	struct pattern *pattern;
	char *end;

	if (strcmp(r->text, "...") == 0) {
		add_pattern(block)->kind = ANY_FRAMES;
		return 0;
	}
	if (strncmp(r->text, "fingerprint:", 12) == 0 || strncmp(r->text, "cause:", 6) == 0) {
		const char *digits = strchr(r->text, ':') + 1;

		block->exact = *r->text == 'f';
		block->by_cause = *r->text == 'c';
		block->fingerprint = strtoull(digits, &end, 16);
		return *end || strlen(digits) != 16
			       ? fail(r, "\"%s\" is no fingerprint of 16 digits", digits)
			       : 0;
	}
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (strncmp(r->text, words[i].word, 4) != 0)
			continue;
		if (!r->text[4])
			return fail(r, "nothing behind %s", words[i].word);
		pattern = add_pattern(block);
		pattern->kind = words[i].kind;
		pattern->glob = copy(r->text + 4);
		if (pattern->kind == SOURCE)
			split_line_number(pattern);
		return 0;
	}
	return fail(r, "\"%s\" is none of fun:, obj:, src:, fingerprint:, cause:, ...", r->text);
}

static int read_kind(struct reader *r, struct block *block)
{
	if (strncmp(r->text, "perdure:", 8) != 0 || !r->text[8])
		return fail(r, "expected perdure:KIND, found \"%s\"", r->text);
	block->kind = copy(r->text + 8);
	if (!strpbrk(block->kind, "*?[") && kind_by_name(block->kind) == KIND_COUNT &&
	    strncmp(block->kind, "custom/", 7) != 0)
		return fail(r, "%s is no kind of finding", block->kind);
	return 0;
}

static int read_block(struct reader *r)
{
	struct block *block = calloc(1, sizeof(*block));
	unsigned start = r->line;

	if (!block)
		abort();
	block->next = blocks;
	blocks = block;
	if (!next_line(r))
		return fail(r, "the block that starts in line %u is not closed", start);
	block->name = copy(r->text);
	if (!next_line(r))
		return fail(r, "the block that starts in line %u is not closed", start);
	if (strcmp(r->text, "}") == 0)
		return fail(r, "a block needs a name and a kind");
	if (read_kind(r, block) < 0)
		return -1;
	for (;;) {
		if (!next_line(r))
			return fail(r, "the block that starts in line %u is not closed", start);
		if (strcmp(r->text, "}") == 0)
			break;
		if (read_pattern(r, block) < 0)
			return -1;
	}
	if (!block->patterns && !block->exact && !block->by_cause)
		return fail(r, "a block without any fun:, obj:, src:, fingerprint: or cause: line");
	return 0;
}

int suppress_read(const char *path, char *error, size_t size)
{
	struct reader r = { .path = path, .error = error, .error_size = size };
	int status = 0;

	r.file = fopen(path, "r");
	if (!r.file) {
		snprintf(error, size, "%s: %s", path, strerror(errno));
		return -1;
	}
	while (status == 0 && next_line(&r)) {
		if (strcmp(r.text, "{") == 0)
			status = read_block(&r);
		else
			status = fail(&r, "expected a block in braces, found \"%s\"", r.text);
	}
	if (status == 0 && ferror(r.file)) {
		snprintf(error, size, "%s: %s", path, strerror(errno));
		status = -1;
	}
	free(r.memory);
	fclose(r.file);
	return status;
}

/* ---- matching ---- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* A path as it is shown, as it is, or its last component. */
static bool path_matches(const char *glob, const char *shown, const char *path)
{
	return (shown && fnmatch(glob, shown, 0) == 0) || (path && fnmatch(glob, path, 0) == 0) ||
	       (path && fnmatch(glob, base_name(path), 0) == 0);
}

static bool frame_matches(const struct pattern *pattern, const struct frame_info *frame)
{
	switch (pattern->kind) {
	case FUNCTION:
		return fnmatch(pattern->glob, frame->function, 0) == 0;
	case OBJECT:
		return path_matches(pattern->glob, NULL, frame->module);
	default:
		return path_matches(pattern->glob, frame->file, frame->path) &&
		       (!pattern->line || pattern->line == frame->line);
	}
}

/* The patterns from the innermost frame on; callers further out may be anything. */
static bool stack_matches(const struct pattern *pattern, size_t patterns,
			  const struct frame_info *frame, unsigned frames)
{
	for (; patterns; pattern++, patterns--, frame++, frames--) {
		if (pattern->kind == ANY_FRAMES) {
			for (unsigned skip = 0; skip <= frames; skip++)
				if (stack_matches(pattern + 1, patterns - 1, frame + skip,
						  frames - skip))
					return true;
			return false;
		}
		if (!frames || !frame_matches(pattern, frame))
			return false;
	}
	return true;
}

static bool block_matches(const struct block *block, const struct finding *f)
{
	const struct site *site = &f->site[0];

	char name[128];

	snprintf(name, sizeof(name), "custom/%s", f->oracle ? f->oracle : "");
	if (fnmatch(block->kind, kind_info(f->kind)->name, 0) != 0 &&
	    fnmatch(block->kind, name, 0) != 0)
		return false;
	if (block->exact)
		return block->fingerprint == f->fingerprint;
	if (block->by_cause)
		return block->fingerprint == f->cause_fingerprint;
	return stack_matches(block->pattern, block->patterns, site->frame, site->frames);
}

void suppress_apply(struct result *result)
{
	for (size_t i = 0; i < result->findings; i++)
		for (struct block *block = blocks; block; block = block->next)
			if (block_matches(block, &result->finding[i])) {
				result->finding[i].suppressed = true;
				block->used++;
				break;
			}
}

void suppress_print_use(FILE *out)
{
	for (const struct block *block = blocks; block; block = block->next)
		fprintf(out, "perdure: suppression \"%s\": %u finding%s\n", block->name,
			block->used, block->used == 1 ? "" : "s");
}

/* ---- printing ---- */

/* A name as a glob that matches nothing else. */
static void print_glob(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (strchr("*?[\\", *text))
			fputc('\\', out);
		fputc(*text, out);
	}
	fputc('\n', out);
}

static void print_frame(FILE *out, const struct frame_info *frame)
{
	if (strcmp(frame->function, "?") != 0) {
		fputs("   fun:", out);
		print_glob(out, frame->function);
	} else if (frame->module) {
		fputs("   obj:", out);
		print_glob(out, frame->module);
	} else {
		fputs("   ...\n", out);
	}
}

int suppress_write(const char *path, const struct result *result)
{
	FILE *out = output_open(path);

	if (!out)
		return -1;
	for (size_t i = 0; i < result->findings; i++) {
		const struct finding *f = &result->finding[i];
		const struct frame_info *shown = site_shown(&f->site[0]);

		if (!finding_counts(f))
			continue;
		fprintf(out, "{\n   %s in %s\n   perdure:%s\n   fingerprint:%016lx\n",
			kind_info(f->kind)->name, shown ? shown->function : "?",
			kind_info(f->kind)->name, f->fingerprint);
		for (unsigned k = 0; k < f->site[0].frames; k++)
			print_frame(out, &f->site[0].frame[k]);
		fputs("}\n", out);
	}
	return output_close(out, 0);
}
