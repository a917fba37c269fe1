/* SPDX-License-Identifier: BSD-3-Clause */
/* Words, names, values and conditions of library models. */
#include "library/parser.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void parser_fail(struct parser *p, const char *text, ...)
{
	va_list values;
	int length = snprintf(p->error, p->error_size, "%s:%u: ", p->file, p->line);

	va_start(values, text);
	if (length > 0 && (size_t)length < p->error_size)
		vsnprintf(p->error + length, p->error_size - length, text, values);
	va_end(values);
	longjmp(p->failed, 1);
}

/* ---- words ---- */

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '.';
}

void parser_skip_space(struct parser *p)
{
	while (*p->at == ' ' || *p->at == '\t')
		p->at++;
}

bool parser_at_end(struct parser *p)
{
	parser_skip_space(p);
	return !*p->at;
}

bool parser_take(struct parser *p, char c)
{
	parser_skip_space(p);
	if (*p->at != c)
		return false;
	p->at++;
	return true;
}

/* A name or a verb (which may have hyphens); "" if there is none. */
void parser_read_word(struct parser *p, char *word, bool hyphens)
{
	size_t length = 0;

	parser_skip_space(p);
	for (; is_name(*p->at) || (hyphens && *p->at == '-'); p->at++) {
		if (length == NAME - 1)
			parser_fail(p, "name too long");
		word[length++] = *p->at;
	}
	word[length] = 0;
}

/* The rest of the line must not hold anything. */
void parser_expect_end(struct parser *p)
{
	if (!parser_at_end(p))
		parser_fail(p, "unexpected \"%s\" at the end of the line", p->at);
}

uint32_t parser_add_text(struct parser *p, const char *text)
{
	struct library_table *table = p->table;
	size_t length = strlen(text) + 1;
	uint32_t offset = table->text_used;

	if (offset + length > LIBRARY_TEXT)
		parser_fail(p, "the models are too large: out of room for names");
	memcpy(table->text + offset, text, length);
	table->text_used += length;
	return offset;
}

uint32_t parser_find_function(const struct parser *p, const char *name)
{
	for (uint32_t i = 0; i < p->table->functions; i++)
		if (strcmp(library_text(p->table, p->table->function[i].name), name) == 0)
			return i;
	return p->table->functions;
}

/* The function of this name; a new one has no effects yet. */
struct library_function *parser_need_function(struct parser *p, const char *name)
{
	struct library_table *table = p->table;
	uint32_t index = parser_find_function(p, name);

	if (index == LIBRARY_FUNCTIONS)
		parser_fail(p, "the models are too large: more than %d functions",
			    LIBRARY_FUNCTIONS);
	if (!p->has_library)
		parser_fail(p, "%s before the first \"library\" line", name);
	if (index == table->functions) {
		table->function[index] =
			(struct library_function){ .name = parser_add_text(p, name),
						   .library = p->library };
		table->functions++;
	}
	return &table->function[index];
}

unsigned parser_find_object(const struct parser *p, const char *name)
{
	for (unsigned i = 0; i < p->table->objects; i++)
		if (strcmp(library_text(p->table, p->table->object[i].name), name) == 0)
			return i + 1;
	return 0;
}

bool parser_parse_number(const char *text, int64_t *value)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*value = strtoull(text, &end, 0);
	return !errno && !*end;
}

static bool find_constant(const struct parser *p, const char *name, int64_t *value)
{
	for (unsigned i = p->constants; i-- > 0;)
		if (strcmp(p->constant[i].name, name) == 0) {
			*value = p->constant[i].value;
			return true;
		}
	return false;
}

/* NUMBER or NAME, several joined by | */
int64_t parser_read_constant(struct parser *p)
{
	int64_t value, all = 0;
	char word[NAME];

	do {
		bool negative = parser_take(p, '-');

		parser_read_word(p, word, false);
		if (!parser_parse_number(word, &value) && !find_constant(p, word, &value))
			parser_fail(p, "\"%s\" is neither a number nor a constant", word);
		all |= negative ? -value : value;
	} while (parser_take(p, '|'));
	return all;
}

/* ---- values ---- */

const struct parameter *parser_find_parameter(struct parser *p, const char *name)
{
	if (strcmp(name, "result") == 0)
		return &p->result;
	for (unsigned i = 0; i < p->parameters; i++)
		if (strcmp(p->parameter[i].name, name) == 0)
			return &p->parameter[i];
	return NULL;
}

static void expect_closed(struct parser *p, const char *what)
{
	if (!parser_take(p, ')'))
		parser_fail(p, "%s(…) is not closed", what);
}

/* ask(FUNCTION) */
static void read_question(struct parser *p, struct library_term *term)
{
	char word[NAME];

	parser_read_word(p, word, false);
	if (!*word)
		parser_fail(p, "ask(FUNCTION): which function?");
	term->source = LIBRARY_ANSWER;
	term->constant = parser_need_function(p, word) - p->table->function;
	expect_closed(p, "ask");
}

/* NUMBER, CONSTANT, [*]PARAMETER, result, size([*]PARAMETER), pm([*]PARAMETER), ask(FUNCTION) */
static void read_term(struct parser *p, struct library_term *term)
{
	bool star = parser_take(p, '*'), size = false, pm = false;
	const struct parameter *parameter;
	char word[NAME];

	parser_read_word(p, word, false);
	if (strcmp(word, "ask") == 0 && parser_take(p, '(')) {
		read_question(p, term);
		return;
	}
	size = strcmp(word, "size") == 0 && *p->at == '(';
	pm = strcmp(word, "pm") == 0 && *p->at == '(';
	if (size || pm) {
		p->at++;
		star = parser_take(p, '*');
		parser_read_word(p, word, false);
		expect_closed(p, size ? "size" : "pm");
	}
	if (!star && !size && !pm &&
	    (parser_parse_number(word, &term->constant) ||
	     find_constant(p, word, &term->constant))) {
		term->source = LIBRARY_CONSTANT;
		return;
	}
	parameter = parser_find_parameter(p, word);
	if (!parameter)
		parser_fail(p, "\"%s\" is no parameter of %s", word,
			    library_text(p->table, p->function->name));
	if (parameter->floating)
		parser_fail(p, "%s is a float, which effects cannot use", word);
	if (parameter->pointer && !star && size)
		parser_fail(p, "%s points to an object: write size(*%s)", word, word);
	if (star && parameter->object && !parameter->pointer)
		parser_fail(p, "%s is an object itself, not a pointer to one", word);
	if (size && (!parameter->object || !p->table->object[parameter->object - 1].sized))
		parser_fail(p, "the size of %s is not known", word);
	term->source = parameter == &p->result ? LIBRARY_RESULT : LIBRARY_WORD;
	term->word = parameter->word;
	term->dereferenced = star;
	term->narrow = parameter->narrow;
	term->size = size;
	term->pm = pm;
	if (star == parameter->pointer)
		term->object = parameter->object;
}

/* TERM {(+|-|*) TERM}, without spaces: a space ends the value. */
void parser_read_value(struct parser *p, struct library_value *value)
{
	char operation = '+';

	*value = (struct library_value){ 0 };
	parser_skip_space(p);
	do {
		if (value->terms == LIBRARY_TERMS)
			parser_fail(p, "more than %d terms in one value", LIBRARY_TERMS);
		value->term[value->terms].operation = operation;
		read_term(p, &value->term[value->terms++]);
		operation = *p->at;
	} while (operation && strchr("+-*", operation) && p->at++);
}

/* ---- conditions ---- */

bool parser_take_word(struct parser *p, const char *wanted)
{
	const char *start;
	char word[NAME];

	parser_skip_space(p);
	start = p->at;
	parser_read_word(p, word, true);
	if (strcmp(word, wanted) == 0)
		return true;
	p->at = start;
	return false;
}

/* [not] VALUE [& BITS] [== CONSTANT | != CONSTANT] */
static void read_condition(struct parser *p, struct library_condition *condition)
{
	bool negated = parser_take_word(p, "not");

	*condition = (struct library_condition){ .mask = UINT64_MAX, .negated = true };
	parser_read_value(p, &condition->value);
	if (parser_take(p, '&'))
		condition->mask = parser_read_constant(p);
	parser_skip_space(p);
	if (strncmp(p->at, "==", 2) == 0 || strncmp(p->at, "!=", 2) == 0) {
		condition->negated = *p->at == '!';
		p->at += 2;
		condition->equals = parser_read_constant(p);
	} else if (*p->at == '=') {
		parser_fail(p, "equality is written ==");
	}
	condition->negated ^= negated;
}

void parser_read_conditions(struct parser *p, struct library_effect *effect)
{
	if (!parser_take_word(p, "if"))
		return;
	do {
		if (effect->conditions == LIBRARY_CONDITIONS)
			parser_fail(p, "more than %d conditions", LIBRARY_CONDITIONS);
		read_condition(p, &effect->condition[effect->conditions++]);
	} while (parser_take_word(p, "and"));
}
