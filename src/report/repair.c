/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/repair.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { CONTEXT = 3, CACHE_LINE = 64, TEXT = 512 };

struct line {
	char *was;    /* without its end */
	char *is;     /* null: the same */
	char *before; /* lines that come before it and behind it; null: none */
	char *behind;
};

struct repair_file {
	char *path;
	struct line *line;
	unsigned lines;
};

/* ---- files ---- */

struct repair_file *repair_open(const char *path)
{
	FILE *in = fopen(path, "re");
	struct repair_file *file;
	char *text = NULL;
	size_t room = 0;
	ssize_t length;

	if (!in)
		return NULL;
	file = calloc(1, sizeof(*file));
	if (!file)
		abort();
	file->path = strdup(path);
	while ((length = getline(&text, &room, in)) >= 0) {
		file->line = realloc(file->line, (file->lines + 1) * sizeof(*file->line));
		if (!file->line)
			abort();
		if (length && text[length - 1] == '\n')
			text[length - 1] = 0;
		file->line[file->lines++] = (struct line){ .was = strdup(text) };
	}
	free(text);
	fclose(in);
	return file;
}

static bool write_file(const struct repair_file *file, bool changed)
{
	FILE *out = fopen(file->path, "we");

	if (!out)
		return false;
	for (unsigned i = 0; i < file->lines; i++) {
		const struct line *line = &file->line[i];

		if (changed && line->before)
			fprintf(out, "%s\n", line->before);
		fprintf(out, "%s\n", changed && line->is ? line->is : line->was);
		if (changed && line->behind)
			fprintf(out, "%s\n", line->behind);
	}
	return fclose(out) == 0;
}

bool repair_save(const struct repair_file *file)
{
	return write_file(file, true);
}

bool repair_undo(const struct repair_file *file)
{
	return write_file(file, false);
}

/* ---- the style of a file ---- */

static bool mentions(const struct repair_file *file, const char *text)
{
	for (unsigned i = 0; i < file->lines; i++)
		if (strstr(file->line[i].was, text))
			return true;
	return false;
}

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* How many arguments a call has, of which this is the opening parenthesis; 0 if it goes on. */
static unsigned count_arguments(const char *p)
{
	unsigned depth = 0, count = 1;

	for (; *p; p++) {
		depth += *p == '(' || *p == '[';
		depth -= *p == ')' || *p == ']';
		count += *p == ',' && depth == 1;
		if (!depth)
			return count;
	}
	return 0;
}

/*
 * A function or macro of the program's own that persists: its name has "persist" in it, and it is
 * called somewhere as a statement, with an address, or an address and a size.
 */
static bool find_helper(const struct repair_file *file, char *name, size_t size,
			unsigned *arguments)
{
	for (unsigned i = 0; i < file->lines; i++) {
		const char *p = file->line[i].was + strspn(file->line[i].was, " \t"), *end = p;

		while (is_name(*end))
			end++;
		if (end == p || *end != '(' || (size_t)(end - p) >= size ||
		    strncmp(p, "pmem", 4) == 0 || !strchr(end, ';'))
			continue;
		snprintf(name, size, "%.*s", (int)(end - p), p);
		*arguments = count_arguments(end);
		if ((strcasestr(name, "persist") || strcasestr(name, "flush_fence")) &&
		    (*arguments == 1 || *arguments == 2))
			return true;
	}
	return false;
}

/* The pool that another call of pmemobj_persist names. */
static bool find_pool(const struct repair_file *file, char *pool, size_t size)
{
	for (unsigned i = 0; i < file->lines; i++) {
		const char *p = strstr(file->line[i].was, "pmemobj_persist(");
		size_t length = p ? strcspn(p + 16, ",)") : 0;

		if (p && length && length < size) {
			snprintf(pool, size, "%.*s", (int)length, p + 16);
			return true;
		}
	}
	return false;
}

static const char *address_of(const char *lvalue)
{
	static char text[TEXT + 1];

	if (*lvalue == '*')
		return lvalue + 1;
	snprintf(text, sizeof(text), "&%s", lvalue);
	return text;
}

static bool persist_text(const struct repair_file *file, const char *lvalue, unsigned long size,
			 char *text, size_t room)
{
	char name[64], bytes[TEXT];
	const char *address = address_of(lvalue);
	unsigned arguments;

	snprintf(bytes, sizeof(bytes), "sizeof(%s)", lvalue);
	if (find_pool(file, name, sizeof(name)))
		snprintf(text, room, "pmemobj_persist(%s, %s, %s);", name, address, bytes);
	else if (mentions(file, "pmem_persist("))
		snprintf(text, room, "pmem_persist(%s, %s);", address, bytes);
	else if (find_helper(file, name, sizeof(name), &arguments)) {
		if (arguments == 1 && size > CACHE_LINE)
			return false;
		snprintf(text, room, arguments == 2 ? "%s(%s, %s);" : "%s(%s);", name, address,
			 bytes);
	} else if (size > CACHE_LINE)
		return false;
	else if (mentions(file, "_mm_sfence"))
		snprintf(text, room, "_mm_clflush(%s); _mm_sfence();", address);
	else
		snprintf(text, room, "__builtin_ia32_clflush(%s); __builtin_ia32_sfence();",
			 address);
	return true;
}

static const char *fence_text(const struct repair_file *file)
{
	return mentions(file, "pmem_flush(") || mentions(file, "pmem_drain(") ? "pmem_drain();"
	       : mentions(file, "_mm_sfence") || mentions(file, "_mm_c")      ? "_mm_sfence();"
	       : mentions(file, "SFENCE()")                                   ? "SFENCE();"
					    : "__builtin_ia32_sfence();";
}

/* ---- where it goes ---- */

static void append(char **to, const char *text)
{
	char *joined;

	if (!*to) {
		*to = strdup(text);
		return;
	}
	if (strstr(*to, text))
		return; /* it is there already */
	if (asprintf(&joined, "%s\n%s", *to, text) < 0)
		abort();
	free(*to);
	*to = joined;
}

static const char *current(const struct line *line)
{
	return line->is ? line->is : line->was;
}

/* The line where the statement ends that this one is part of; 0 if that cannot be told. */
static unsigned end_of(const struct repair_file *file, unsigned line)
{
	int depth = 0;

	for (unsigned i = line - 1; i < file->lines && i < line + 20; i++) {
		for (const char *p = file->line[i].was; *p; p++) {
			depth += *p == '(';
			depth -= *p == ')';
			if (*p == '{' && depth <= 0)
				return 0;
			if (*p == ';' && depth <= 0)
				return p[1 + strspn(p + 1, " \t")] &&
						       p[1 + strspn(p + 1, " \t")] != '/'
					       ? 0
					       : i + 1;
		}
	}
	return 0;
}

/* Does an `if` or the like stand before it, without braces? */
static bool is_only_statement(const struct repair_file *file, unsigned line)
{
	const char *p, *end;

	for (unsigned i = line - 1; i-- > 0;) {
		p = file->line[i].was + strspn(file->line[i].was, " \t");
		if (!*p)
			continue;
		end = p + strlen(p);
		while (end > p && isspace((unsigned char)end[-1]))
			end--;
		return (strncmp(p, "else", 4) == 0 && end == p + 4) ||
		       ((strncmp(p, "if", 2) == 0 || strncmp(p, "for", 3) == 0 ||
			 strncmp(p, "while", 5) == 0 || strncmp(p, "else if", 7) == 0) &&
			end > p && end[-1] == ')');
	}
	return false;
}

static const char *indented(const struct repair_file *file, unsigned line, const char *text)
{
	static char result[6 * TEXT];
	const char *was = file->line[line - 1].was;

	snprintf(result, sizeof(result), "%.*s%s", (int)strspn(was, " \t"), was, text);
	return result;
}

/* Braces around a statement that had none. */
static void put_braces(struct repair_file *file, unsigned line, unsigned end)
{
	unsigned head = line - 1;
	char *opened;

	while (head && !file->line[head - 1].was[strspn(file->line[head - 1].was, " \t")])
		head--;
	if (asprintf(&opened, "%s {", current(&file->line[head - 1])) < 0)
		abort();
	file->line[head - 1].is = opened;
	append(&file->line[end - 1].behind, indented(file, head, "}"));
}

static const char *insert_behind(struct repair_file *file, unsigned line, const char *text)
{
	const char *was = file->line[line - 1].was + strspn(file->line[line - 1].was, " \t");
	unsigned end = end_of(file, line);
	bool alone = is_only_statement(file, line);

	if (!end || strncmp(was, "if", 2) == 0 || strncmp(was, "for", 3) == 0 ||
	    strncmp(was, "while", 5) == 0 || strncmp(was, "return", 6) == 0 || *was == '#')
		return "the statement is part of another one: people have to do it";
	append(&file->line[end - 1].behind, indented(file, line, text));
	if (alone)
		put_braces(file, line, end);
	return NULL;
}

static const char *insert_before(struct repair_file *file, unsigned line, const char *text)
{
	if (is_only_statement(file, line))
		return "the statement is part of another one: people have to do it";
	append(&file->line[line - 1].before, indented(file, line, text));
	return NULL;
}

/* ---- what is stored ---- */

/* "a->b = c;" in one line: both sides; false if the line is anything else. */
static bool split_store(const char *text, char *left, char *right, size_t room)
{
	const char *p = text + strspn(text, " \t"), *equals = strstr(p, " = "),
		   *end = strrchr(p, ';');

	if (!equals || !end || end < equals || strchr(p, '{') || end[1 + strspn(end + 1, " \t")] ||
	    (size_t)(equals - p) >= room || (size_t)(end - equals) >= room)
		return false;
	snprintf(left, room, "%.*s", (int)(equals - p), p);
	snprintf(right, room, "%.*s", (int)(end - equals - 3), equals + 3);
	/* A declaration has two words before the sign. */
	return !strpbrk(left, " \t") && !strstr(right, " = ") && *right;
}

static const char *make_atomic(struct repair_file *file, unsigned line)
{
	char left[TEXT], right[TEXT], *text;
	const char *was = file->line[line - 1].was;

	if (file->line[line - 1].is || file->line[line - 1].behind)
		return NULL; /* somebody has done it, or it is persisted before it is read */
	if (!split_store(was, left, right, TEXT))
		return "the store is more than an assignment: people have to do it";
	if (asprintf(&text, "%.*s__atomic_store_n(%s, %s, __ATOMIC_RELEASE);",
		     (int)strspn(was, " \t"), was, address_of(left), right) < 0)
		abort();
	file->line[line - 1].is = text;
	return NULL;
}

const char *repair_edit(struct repair_file *file, const char *what, unsigned line,
			const char *lvalue, unsigned long size)
{
	char left[TEXT], right[TEXT], text[4 * TEXT];

	if (!line || line > file->lines)
		return "the file has changed";
	if (strcmp(what, "atomic") == 0)
		return make_atomic(file, line);
	if (strcmp(what, "fence") == 0)
		return insert_behind(file, line, fence_text(file));
	if (!lvalue && split_store(file->line[line - 1].was, left, right, TEXT))
		lvalue = left;
	if (!lvalue || strlen(lvalue) > TEXT / 4)
		return "what is stored to has no name: people have to do it";
	if (strcmp(what, "log") == 0) {
		snprintf(text, sizeof(text),
			 mentions(file, "TX_") ? "TX_ADD_DIRECT(%s);"
					       : "pmemobj_tx_add_range_direct(%s, sizeof(%s));",
			 address_of(lvalue), lvalue);
		return insert_before(file, line, text);
	}
	if (file->line[line - 1].before)
		return NULL; /* it is logged, and the commit writes it back */
	if (!persist_text(file, lvalue, size, text, sizeof(text)))
		return "it is larger than a cache line, and the file has no function that persists "
		       "so much";
	return insert_behind(file, line, text);
}

/* ---- differences ---- */

static bool is_changed(const struct line *line)
{
	return line->is || line->before || line->behind;
}

static unsigned count_lines(const char *text)
{
	unsigned count = text ? 1 : 0;

	for (; text && *text; text++)
		count += *text == '\n';
	return count;
}

static void print_added(FILE *out, const char *text)
{
	for (; text; text = strchr(text, '\n') ? strchr(text, '\n') + 1 : NULL)
		fprintf(out, "+%.*s\n", (int)strcspn(text, "\n"), text);
}

static void print_hunk(const struct repair_file *file, unsigned from, unsigned to, int shift,
		       FILE *out)
{
	unsigned added = 0;

	for (unsigned i = from; i < to; i++)
		added += count_lines(file->line[i].before) + count_lines(file->line[i].behind);
	fprintf(out, "@@ -%u,%u +%d,%u @@\n", from + 1, to - from, (int)from + 1 + shift,
		to - from + added);
	for (unsigned i = from; i < to; i++) {
		const struct line *line = &file->line[i];

		print_added(out, line->before);
		if (line->is)
			fprintf(out, "-%s\n+%s\n", line->was, line->is);
		else
			fprintf(out, " %s\n", line->was);
		print_added(out, line->behind);
	}
}

bool repair_diff(const struct repair_file *file, FILE *out)
{
	bool any = false;
	int shift = 0;

	for (unsigned i = 0; i < file->lines; i++) {
		unsigned from = i > CONTEXT ? i - CONTEXT : 0, last = i;

		if (!is_changed(&file->line[i]))
			continue;
		for (unsigned k = i; k < file->lines && k <= last + 2 * CONTEXT; k++)
			if (is_changed(&file->line[k]))
				last = k;
		if (!any)
			fprintf(out, "--- a/%s\n+++ b/%s\n", file->path, file->path);
		any = true;
		last = last + CONTEXT + 1 < file->lines ? last + CONTEXT + 1 : file->lines;
		print_hunk(file, from, last, shift, out);
		for (unsigned k = from; k < last; k++)
			shift += (int)(count_lines(file->line[k].before) +
				       count_lines(file->line[k].behind));
		i = last - 1;
	}
	return any;
}
