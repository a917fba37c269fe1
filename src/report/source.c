/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/source.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct file {
	char *path;
	char **line;
	size_t lines;
	struct file *next;
};
static struct file *files;

static void read_lines(struct file *file)
{
	FILE *stream = fopen(file->path, "r");
	char *text = NULL;
	size_t size = 0, room = 0;
	ssize_t length;

	if (!stream)
		return;
	while ((length = getline(&text, &size, stream)) >= 0) {
		while (length && (text[length - 1] == '\n' || text[length - 1] == '\r'))
			text[--length] = 0;
		if (file->lines == room) {
			room = room ? room * 2 : 256;
			file->line = realloc(file->line, room * sizeof(*file->line));
			if (!file->line)
				abort();
		}
		file->line[file->lines++] = strdup(text);
	}
	free(text);
	fclose(stream);
}

const char *source_line(const char *path, unsigned line)
{
	struct file *file;

	if (!path || !line)
		return NULL;
	for (file = files; file; file = file->next)
		if (strcmp(file->path, path) == 0)
			break;
	if (!file) {
		file = calloc(1, sizeof(*file));
		if (!file)
			abort();
		file->path = strdup(path);
		file->next = files;
		files = file;
		read_lines(file);
	}
	return line <= file->lines ? file->line[line - 1] : NULL;
}

bool source_is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static char *trimmed(const char *start, const char *end)
{
	while (start < end && isspace((unsigned char)*start))
		start++;
	while (end > start && isspace((unsigned char)end[-1]))
		end--;
	return start < end ? strndup(start, end - start) : NULL;
}

/* Walks left from `end` over one expression: names, members, indices, calls, unary stars. */
static char *expression_before(const char *start, const char *end)
{
	const char *p = end;
	int depth = 0;

	while (p > start && isspace((unsigned char)p[-1]))
		p--;
	end = p;
	for (; p > start; p--) {
		char c = p[-1];

		if (c == ')' || c == ']') {
			depth++;
		} else if (c == '(' || c == '[') {
			if (--depth < 0)
				break;
		} else if (depth == 0 && !source_is_name(c) && c != '.' && c != '*' && c != ':' &&
			   !(c == '>' && p - 1 > start && p[-2] == '-') &&
			   !(c == '-' && *p == '>')) {
			break;
		}
	}
	if (depth > 0 || (*p == '(' && p > start && p[-1] == '>')) /* a cast of C++ */
		return NULL;
	return trimmed(p, end);
}

static char *first_argument(const char *open)
{
	const char *p = open + 1;
	int depth = 0;

	for (; *p; p++) {
		if (*p == '(' || *p == '[')
			depth++;
		else if (*p == ')' || *p == ']')
			depth--;
		if (depth < 0 || (depth == 0 && *p == ','))
			return trimmed(open + 1, p);
	}
	return NULL;
}

/* Labels and types in front are no part of the lvalue, and a declaration has no PM target. */
static char *checked(char *text)
{
	if (text && (strlen(text) > 60 || !strpbrk(text, "abcdefghijklmnopqrstuvwxyz"
							 "ABCDEFGHIJKLMNOPQRSTUVWXYZ"))) {
		free(text);
		return NULL;
	}
	return text;
}

static bool starts_compound(const char *p)
{
	return strchr("+-*/%&|^", *p) && p[1] == '=';
}

/* Functions that write what their first argument points to. */
static bool writes_first_argument(const char *name, size_t length)
{
	static const char *const names[] = {
		"memcpy",
		"memmove",
		"memset",
		"mempcpy",
		"strcpy",
		"strncpy",
		"strcat",
		"strncat",
		"stpcpy",
		"snprintf",
		"sprintf",
		"bzero",
		"pmem_memcpy",
		"pmem_memset",
		"fread",
		"pmem_memmove",
		"pmem_memcpy_nodrain",
		"pmem_memset_nodrain",
		"pmem_memmove_nodrain",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strlen(names[i]) == length && strncmp(names[i], name, length) == 0)
			return true;
	return false;
}

char *source_target(const char *path, unsigned line, unsigned column)
{
	const char *text = source_line(path, line), *at, *p;

	if (!text || !column || column > strlen(text))
		return NULL;
	at = text + column - 1;
	if ((at[0] == '=' && at[1] != '=') || starts_compound(at) || strncmp(at, "<<=", 3) == 0 ||
	    strncmp(at, ">>=", 3) == 0)
		return checked(expression_before(text, at));
	if (strncmp(at, "++", 2) == 0 || strncmp(at, "--", 2) == 0) {
		char *before = expression_before(text, at);

		if (before)
			return checked(before);
		for (p = at + 2; source_is_name(*p) || *p == '.' || *p == '>' || *p == '-' ||
				 *p == '[' || *p == ']' || *p == '*';)
			p++;
		return checked(trimmed(at + 2, p));
	}
	for (p = at; source_is_name(*p); p++)
		;
	if (p > at && *p == '(' && writes_first_argument(at, p - at))
		return checked(first_argument(p));
	return NULL;
}

char *source_normal(const char *path, unsigned line)
{
	const char *text = source_line(path, line);
	char *normal, *out;

	if (!text)
		return NULL;
	normal = out = malloc(strlen(text) + 1);
	if (!out)
		abort();
	for (; *text; text++) {
		const char *end;

		if (text[0] == '/' && text[1] == '/')
			break;
		if (text[0] == '/' && text[1] == '*') {
			end = strstr(text + 2, "*/");
			if (!end)
				break;
			text = end + 1;
			continue;
		}
		if (!isspace((unsigned char)*text))
			*out++ = *text;
		else if (out > normal && out[-1] != ' ')
			*out++ = ' ';
	}
	while (out > normal && out[-1] == ' ')
		out--;
	*out = 0;
	return normal;
}
