/* SPDX-License-Identifier: BSD-3-Clause */
#include "library/parse.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "library/parser.h"

/* ---- functions ---- */

/* [TYPE] [*] NAME; the name may be missing where a type could stand. */
static void read_typed_name(struct parser *p, struct parameter *parameter)
{
	char word[NAME];

	*parameter = (struct parameter){ 0 };
	parser_read_word(p, word, false);
	parameter->object = parser_find_object(p, word);
	parameter->narrow = strcmp(word, "int") == 0;
	parameter->floating = strcmp(word, "float") == 0;
	if (parameter->object || parameter->narrow || parameter->floating) {
		parameter->pointer = parser_take(p, '*');
		if (parameter->pointer && !parameter->object)
			parser_fail(p, "only objects can have a star here");
		parser_read_word(p, word, false);
	}
	if (!*word)
		parser_fail(p, "a name is missing before \"%s\"", p->at);
	strcpy(parameter->name, word);
}

/* As the psABI passes them: what does not fit into the remaining registers goes to the stack. */
static void place_parameter(struct parser *p, struct parameter *parameter, unsigned *registers,
			    unsigned *stack)
{
	unsigned words = 1;

	if (parameter->floating)
		return;
	if (parameter->object && !parameter->pointer)
		words = p->table->object[parameter->object - 1].words;
	if (words <= 2 && *registers + words <= LIBRARY_REGISTERS) {
		parameter->word = *registers;
		*registers += words;
		return;
	}
	parameter->word = LIBRARY_REGISTERS + *stack;
	*stack += words;
	if (*stack > LIBRARY_STACK_WORDS)
		parser_fail(p, "too many parameters");
}

static void read_parameters(struct parser *p)
{
	unsigned registers = 0, stack = 0;

	p->parameters = 0;
	if (parser_take(p, ')'))
		return;
	do {
		parser_skip_space(p);
		if (strncmp(p->at, "...", 3) == 0) {
			p->at += 3;
			p->function->variadic = true;
			break;
		}
		if (p->parameters == PARAMETERS)
			parser_fail(p, "too many parameters");
		read_typed_name(p, &p->parameter[p->parameters]);
		parser_skip_space(p);
		if (*p->at && *p->at != ',' && *p->at != ')')
			parser_fail(
				p,
				"expected a comma or a parenthesis behind \"%s\": parameters are names, "
				"without types of C",
				p->parameter[p->parameters].name);
		if (parser_find_parameter(p, p->parameter[p->parameters].name))
			parser_fail(p, "two parameters are called %s",
				    p->parameter[p->parameters].name);
		place_parameter(p, &p->parameter[p->parameters++], &registers, &stack);
	} while (parser_take(p, ','));
	if (!parser_take(p, ')'))
		parser_fail(p, "the list of parameters is not closed");
	p->function->stack_words = stack;
}

static void read_function(struct parser *p)
{
	unsigned *described;

	parser_take_word(p, "void"); /* as good as nothing */
	read_typed_name(p, &p->result);
	if (!parser_take(p, '('))
		parser_fail(
			p,
			"\"%s\" starts no statement: expected \"library\", \"constant\", \"object\", "
			"or a function with its parameters",
			p->result.name);
	p->function = parser_need_function(p, p->result.name);
	described = &p->described[p->function - p->table->function];
	if (*described)
		parser_fail(p, "%s is described in line %u already", p->result.name, *described);
	*described = p->line;
	p->function->library = p->library;
	p->function->effect = p->table->effects;
	p->function->effects = 0;
	p->function->stack_words = 0;
	p->function->variadic = false;
	p->function->shipped = false;
	read_parameters(p);
	parser_expect_end(p);
}

/* ---- other statements ---- */

/* A glob, up to the next space. */
static void read_glob(struct parser *p, char *glob)
{
	size_t length = 0;

	parser_skip_space(p);
	for (; *p->at && !isspace((unsigned char)*p->at); p->at++) {
		if (length == NAME - 1)
			parser_fail(p, "glob too long");
		glob[length++] = *p->at;
	}
	glob[length] = 0;
	if (!length)
		parser_fail(p, "library: the name of its file is missing, as in libpmem.so*");
}

static void read_library(struct parser *p)
{
	struct library_table *table = p->table;
	struct library *library = &table->library[table->libraries];
	char glob[NAME];

	if (table->libraries == LIBRARY_LIBRARIES)
		parser_fail(p, "more than %d libraries", LIBRARY_LIBRARIES);
	read_glob(p, glob);
	*library = (struct library){ .glob = parser_add_text(p, glob) };
	library->anywhere = parser_take_word(p, "anywhere");
	library->trusted = parser_take_word(p, "trusted");
	parser_expect_end(p);
	p->library = table->libraries++;
	p->has_library = true;
	p->function = NULL;
}

static void read_constant_statement(struct parser *p)
{
	struct constant *constant = &p->constant[p->constants];

	if (p->constants == CONSTANTS)
		parser_fail(p, "more than %d constants", CONSTANTS);
	parser_read_word(p, constant->name, false);
	if (!*constant->name || isdigit((unsigned char)*constant->name) || parser_at_end(p))
		parser_fail(p, "constant NAME NUMBER");
	constant->value = parser_read_constant(p);
	parser_expect_end(p);
	p->constants++;
}

/* object NAME WORDS address FUNCTION [size FUNCTION] */
static void read_object(struct parser *p)
{
	static const char usage[] = "object NAME WORDS address FUNCTION [size FUNCTION]";
	struct library_object *object = &p->table->object[p->table->objects];
	int64_t words;
	char word[NAME];

	if (p->table->objects == LIBRARY_OBJECTS)
		parser_fail(p, "more than %d kinds of objects", LIBRARY_OBJECTS);
	*object = (struct library_object){ 0 };
	parser_read_word(p, word, false);
	if (!*word || parser_find_object(p, word))
		parser_fail(p, *word ? "object %s: already there" : "%s%s", *word ? word : usage,
			    "");
	object->name = parser_add_text(p, word);
	parser_read_word(p, word, false);
	if (!parser_parse_number(word, &words) || words < 1 || words > 2 ||
	    !parser_take_word(p, "address"))
		parser_fail(p, "%s; WORDS is 1 or 2", usage);
	object->words = words;
	parser_read_word(p, word, false);
	if (!*word)
		parser_fail(p, "%s", usage);
	object->address = parser_need_function(p, word) - p->table->function;
	if (parser_take_word(p, "size")) {
		parser_read_word(p, word, false);
		if (!*word)
			parser_fail(p, "%s", usage);
		object->size = parser_need_function(p, word) - p->table->function;
		object->sized = true;
	}
	parser_expect_end(p);
	p->table->objects++;
}

static void read_statement(struct parser *p)
{
	if (parser_take_word(p, "library"))
		read_library(p);
	else if (parser_take_word(p, "constant"))
		read_constant_statement(p);
	else if (parser_take_word(p, "object"))
		read_object(p);
	else
		read_function(p);
}

static void read_line(struct parser *p, char *line)
{
	char *comment = strchr(line, '#');
	bool indented = *line == ' ' || *line == '\t';

	if (comment)
		*comment = 0;
	for (size_t length = strlen(line); length && isspace((unsigned char)line[length - 1]);)
		line[--length] = 0;
	p->at = line;
	if (parser_at_end(p))
		return;
	if (indented)
		parser_read_effect(p);
	else
		read_statement(p);
}

/* ---- files ---- */

void library_table_init(struct library_table *table)
{
	memset(table, 0, offsetof(struct library_table, library));
	table->text[0] = 0; /* offset 0 is no name */
	table->text_used = 1;
}

void library_mark_shipped(struct library_table *table)
{
	for (uint32_t i = 0; i < table->libraries; i++)
		table->library[i].shipped = true;
	for (uint32_t i = 0; i < table->functions; i++)
		table->function[i].shipped = true;
}

int library_parse_text(struct library_table *table, const char *name, const char *text, char *error,
		       size_t size)
{
	struct parser *p = calloc(1, sizeof(*p));
	char *copy = strdup(text), *line, *next;
	int status = 0;

	if (!p || !copy)
		abort();
	p->table = table;
	p->file = name;
	p->error = error;
	p->error_size = size;
	next = copy;
	if (setjmp(p->failed)) {
		status = -1;
	} else {
		while ((line = strsep(&next, "\n"))) {
			p->line++;
			read_line(p, line);
		}
	}
	free(copy);
	free(p);
	return status;
}

static char *read_all(FILE *file, size_t *size)
{
	char *text = NULL;
	size_t used = 0, room = 0, got;

	do {
		if (used + 4096 > room) {
			room = room ? room * 2 : 1 << 16;
			text = realloc(text, room);
			if (!text)
				abort();
		}
		got = fread(text + used, 1, room - used - 1, file);
		used += got;
	} while (got);
	text[used] = 0;
	*size = used;
	return text;
}

int library_parse_file(struct library_table *table, const char *path, char *error, size_t size)
{
	FILE *file = fopen(path, "r");
	size_t length;
	char *text;
	int status;

	if (!file) {
		snprintf(error, size, "%s: %s", path, strerror(errno));
		return -1;
	}
	text = read_all(file, &length);
	if (ferror(file)) {
		snprintf(error, size, "%s: %s", path, strerror(errno));
		status = -1;
	} else if (strlen(text) != length) {
		unsigned line = 1;

		for (const char *p = text; *p; p++)
			line += *p == '\n';
		snprintf(error, size, "%s:%u: a byte with the value 0: this is no text", path,
			 line);
		status = -1;
	} else {
		status = library_parse_text(table, path, text, error, size);
	}
	fclose(file);
	free(text);
	return status;
}
