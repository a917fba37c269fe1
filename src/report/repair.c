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

/* Where a function or macro of this name is declared: its parameters; null if it is not before
 * that. */
static const char *parameters_of(const struct repair_file *file, const char *name, unsigned before)
{
	size_t length = strlen(name);

	for (unsigned i = 0; i + 1 < before; i++) {
		const char *was = file->line[i].was, *at = strstr(was, name);

		if (at && at[length] == '(' && !isspace((unsigned char)*was) &&
		    (at == was || !is_name(at[-1])))
			return at + length;
	}
	return NULL;
}

/* An address, or an address and a size. */
static bool takes_place(const char *parameters, unsigned arguments)
{
	const char *comma = strchr(parameters, ',');

	if (count_arguments(parameters) != arguments)
		return false;
	return arguments == 1 || (comma && !strchr(comma, '*') &&
				  (strcasestr(comma, "size") || strcasestr(comma, "len") ||
				   strstr(comma, " n)") || strstr(comma, "int")));
}

/*
 * A function or macro of the program's own that persists: its name has "persist" in it, it is
 * called somewhere as a statement, and declared before the line where it is needed.
 */
static bool find_helper(const struct repair_file *file, unsigned line, char *name, size_t size,
			unsigned *arguments)
{
	for (unsigned i = 0; i < file->lines; i++) {
		const char *p = file->line[i].was + strspn(file->line[i].was, " \t"), *end = p;
		const char *parameters;

		while (is_name(*end))
			end++;
		if (end == p || *end != '(' || (size_t)(end - p) >= size ||
		    strncmp(p, "pmem", 4) == 0 || !strchr(end, ';'))
			continue;
		snprintf(name, size, "%.*s", (int)(end - p), p);
		*arguments = count_arguments(end);
		parameters = parameters_of(file, name, line);
		if (strcasestr(name, "persist") && (*arguments == 1 || *arguments == 2) &&
		    parameters && takes_place(parameters, *arguments))
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

static bool persist_text(const struct repair_file *file, unsigned line, const char *lvalue,
			 unsigned long size, char *text, size_t room)
{
	char name[64], bytes[TEXT];
	const char *address = address_of(lvalue);
	unsigned arguments;

	snprintf(bytes, sizeof(bytes), "sizeof(%s)", lvalue);
	if (find_pool(file, name, sizeof(name)))
		snprintf(text, room, "pmemobj_persist(%s, %s, %s);", name, address, bytes);
	else if (mentions(file, "pmem_persist("))
		snprintf(text, room, "pmem_persist(%s, %s);", address, bytes);
	else if (find_helper(file, line, name, sizeof(name), &arguments)) {
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

/* ---- what a line says ---- */

/* Without a comment at its end and white space around it; in a buffer of its own. */
static const char *code_of(const struct repair_file *file, unsigned line, char *text, size_t room)
{
	const char *was = file->line[line - 1].was + strspn(file->line[line - 1].was, " \t");
	char *comment, *end;

	snprintf(text, room, "%s", was);
	comment = strstr(text, "//");
	if (!comment)
		comment = strstr(text, "/*");
	if (comment && (comment[1] == '/' || strstr(comment, "*/")))
		*comment = 0;
	for (end = text + strlen(text); end > text && isspace((unsigned char)end[-1]);)
		*--end = 0;
	return text;
}

/* The line of code before this one; 0 if there is none. */
static unsigned line_before(const struct repair_file *file, unsigned line)
{
	char text[TEXT];

	while (--line) {
		code_of(file, line, text, sizeof(text));
		if (*text && *text != '*' && strncmp(text, "/*", 2) != 0)
			return line;
	}
	return 0;
}

static bool starts(const char *text, const char *word)
{
	size_t length = strlen(word);

	return strncmp(text, word, length) == 0 && !is_name(text[length]);
}

static bool is_balanced(const char *text)
{
	int depth = 0;

	for (; *text; text++)
		depth += (*text == '(') - (*text == ')');
	return !depth;
}

/* "if (…)" or the like, alone in its line: the statement below it has no braces. */
static bool is_head(const char *text)
{
	const char *condition = starts(text, "else") ? text + 4 + strspn(text + 4, " ") : text;

	if (!*condition)
		return true;
	return (starts(condition, "if") || starts(condition, "for") ||
		starts(condition, "while")) &&
	       text[strlen(text) - 1] == ')' && is_balanced(text) && !strstr(condition + 2, "if (");
}

enum place { FREE, ALONE /* the only statement of an `if` or the like */, UNKNOWN };

static enum place place_of(const struct repair_file *file, unsigned line)
{
	unsigned before = line_before(file, line);
	char text[TEXT];
	size_t length;

	if (!before)
		return UNKNOWN;
	code_of(file, before, text, sizeof(text));
	length = strlen(text);
	if (is_head(text))
		return ALONE;
	return strchr(";{}:", text[length - 1]) ? FREE : UNKNOWN;
}

/* The line where the statement ends that begins here; 0 if it is more than one. */
static unsigned end_of(const struct repair_file *file, unsigned line)
{
	enum { MOST = 12 };
	char text[TEXT];

	for (unsigned i = line; i <= file->lines && i < line + MOST; i++) {
		const char *semicolon;

		code_of(file, i, text, sizeof(text));
		semicolon = strchr(text, ';');
		if (strpbrk(text, "{}#") || (semicolon && semicolon[1]))
			return 0;
		if (semicolon)
			return i;
	}
	return 0;
}

/* A place that has the same address when it is named again: no calls, and nothing that changes. */
static bool is_steady(const char *lvalue)
{
	for (const char *p = lvalue; *p; p++) {
		if (p[0] == '-' && p[1] == '>')
			p++;
		else if (!is_name(*p) && !strchr(".[]", *p) && !(*p == '*' && p == lvalue))
			return false;
	}
	return *lvalue;
}

/* Both sides of an assignment, which may go over several lines; false if it is anything else. */
static bool split_store(const struct repair_file *file, unsigned line, unsigned end, char *left,
			char *right)
{
	char text[TEXT], *equals;

	code_of(file, line, left, TEXT);
	equals = strstr(left, " =");
	if (!equals || (equals[2] && equals[2] != ' '))
		return false;
	snprintf(right, TEXT, "%s", equals + 2 + strspn(equals + 2, " "));
	*equals = 0;
	for (unsigned i = line + 1; i <= end; i++) {
		code_of(file, i, text, sizeof(text));
		if (strlen(right) + strlen(text) + 2 > TEXT)
			return false;
		if (*right)
			strcat(right, " ");
		strcat(right, text);
	}
	right[strcspn(right, ";")] = 0;
	return is_steady(left) && *right && !strstr(right, "++") && !strstr(right, "--") &&
	       !strstr(right, " = ");
}

/* A change in place: "a->b++", "a->b += c". */
static bool changes(const char *text, const char *lvalue)
{
	const char *p =
		strncmp(text, "++", 2) == 0 || strncmp(text, "--", 2) == 0 ? text + 2 : text;
	size_t length = strlen(lvalue);

	if (strncmp(p, lvalue, length) != 0)
		return false;
	p += length + strspn(p + length, " ");
	return *p == ';' || strncmp(p, "++;", 3) == 0 || strncmp(p, "--;", 3) == 0 ||
	       (*p && strchr("+-*/|&^", *p) && p[1] == '=');
}

/* As far as the file tells: it may be declared elsewhere, and then the compiler will say so. */
static bool is_declared_as(const struct repair_file *file, const char *lvalue, bool as_bits)
{
	const char *name = lvalue + strlen(lvalue);

	while (name > lvalue && is_name(name[-1]))
		name--;
	for (unsigned i = 0; *name && i < file->lines; i++) {
		const char *at = strstr(file->line[i].was, name), *behind;

		if (!at || (at > file->line[i].was && is_name(at[-1])) || is_name(at[strlen(name)]))
			continue;
		behind = at + strlen(name);
		behind += strspn(behind, " ");
		if (as_bits ? *behind == ':' &&
				      isdigit((unsigned char)behind[1 + strspn(behind + 1, " ")])
			    : (*behind == ';' || *behind == ',') &&
				      (strstr(file->line[i].was, "double") ||
				       strstr(file->line[i].was, "float")))
			return true;
	}
	return false;
}

/* ---- where it goes ---- */

static const char people[] = "people have to do it";

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

/* With the white space before it, and the end of line, that this line has. */
static const char *indented(const struct repair_file *file, unsigned line, const char *text)
{
	static char result[6 * TEXT];
	const char *was = file->line[line - 1].was;
	size_t length = strlen(was);

	snprintf(result, sizeof(result), "%.*s%s%s", (int)strspn(was, " \t"), was, text,
		 length && was[length - 1] == '\r' ? "\r" : "");
	return result;
}

/* Braces around a statement that had none. */
static void put_braces(struct repair_file *file, unsigned line, unsigned end)
{
	unsigned head = line_before(file, line);
	const char *was = current(&file->line[head - 1]);
	size_t length = strcspn(was, "\r");
	char *opened;

	if (length > 2 && was[length - 1] == '{')
		return;
	if (asprintf(&opened, "%.*s {%s", (int)length, was, was + length) < 0)
		abort();
	file->line[head - 1].is = opened;
	append(&file->line[end - 1].behind, indented(file, head, "}"));
}

static const char *insert_behind(struct repair_file *file, unsigned line, const char *text)
{
	unsigned end = end_of(file, line);
	enum place place = place_of(file, line);
	char head[TEXT];

	if (!end || place == UNKNOWN)
		return people;
	if (place == ALONE &&
	    strstr(code_of(file, line_before(file, line), head, sizeof(head)), "//"))
		return people;
	if (end < file->lines && strstr(file->line[end].was, text))
		return "it is there already";
	append(&file->line[end - 1].behind, indented(file, line, text));
	if (place == ALONE)
		put_braces(file, line, end);
	return NULL;
}

static const char *insert_before(struct repair_file *file, unsigned line, const char *text)
{
	unsigned before = line_before(file, line);

	if (place_of(file, line) != FREE || !end_of(file, line))
		return people;
	if (before && strstr(file->line[before - 1].was, text))
		return "it is there already";
	append(&file->line[line - 1].before, indented(file, line, text));
	return NULL;
}

/* ---- edits ---- */

static const char *make_atomic(struct repair_file *file, unsigned line)
{
	char left[TEXT], right[TEXT], *text;
	const char *was = file->line[line - 1].was;

	if (file->line[line - 1].is || file->line[line - 1].behind)
		return NULL; /* somebody has done it, or it is persisted before it is read */
	if (end_of(file, line) != line || !split_store(file, line, line, left, right) ||
	    is_declared_as(file, left, true) || is_declared_as(file, left, false))
		return people;
	if (asprintf(&text, "%.*s__atomic_store_n(%s, %s, __ATOMIC_RELEASE);%s",
		     (int)strspn(was, " \t"), was, address_of(left), right,
		     was[strlen(was) - 1] == '\r' ? "\r" : "") < 0)
		abort();
	file->line[line - 1].is = text;
	return NULL;
}

/* What the line stores to, if it can be named again; otherwise null. */
static const char *stored_to(const struct repair_file *file, unsigned line, const char *lvalue,
			     char *left)
{
	unsigned end = end_of(file, line);
	char right[TEXT], code[TEXT];

	if (!end)
		return NULL;
	if (!split_store(file, line, end, left, right)) {
		code_of(file, line, code, sizeof(code));
		if (!lvalue || !is_steady(lvalue) || !changes(code, lvalue))
			return NULL;
		snprintf(left, TEXT, "%s", lvalue);
	}
	return strlen(left) > TEXT / 4 || is_declared_as(file, left, true) ? NULL : left;
}

static bool is_same(const char *text, const char *was)
{
	size_t length = strcspn(was, "\r");

	return strlen(text) == length && strncmp(text, was, length) == 0;
}

const char *repair_edit(struct repair_file *file, const struct repair_wish *wish)
{
	char left[TEXT], text[4 * TEXT];
	const char *lvalue;

	if (!wish->line || wish->line > file->lines ||
	    (wish->text && !is_same(wish->text, file->line[wish->line - 1].was)))
		return "the file has changed since";
	if (strcmp(wish->what, "atomic") == 0)
		return make_atomic(file, wish->line);
	if (strcmp(wish->what, "fence") == 0)
		return insert_behind(file, wish->line, fence_text(file));
	lvalue = stored_to(file, wish->line, wish->lvalue, left);
	if (!lvalue)
		return people;
	if (strcmp(wish->what, "log") == 0) {
		snprintf(text, sizeof(text),
			 mentions(file, "TX_") ? "TX_ADD_DIRECT(%s);"
					       : "pmemobj_tx_add_range_direct(%s, sizeof(%s));",
			 address_of(lvalue), lvalue);
		return insert_before(file, wish->line, text);
	}
	if (file->line[wish->line - 1].before)
		return NULL; /* it is logged, and the commit writes it back */
	if (!persist_text(file, wish->line, lvalue, wish->size, text, sizeof(text)))
		return people;
	return insert_behind(file, wish->line, text);
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

bool repair_diff(const struct repair_file *file, const char *name, FILE *out)
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
			fprintf(out, "--- a/%s\n+++ b/%s\n", name, name);
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
