/* SPDX-License-Identifier: BSD-3-Clause */
#include "library/parse.h"

#include <ctype.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARAMETERS = 24, CONSTANTS = 256, NAME = 512 };

struct parameter {
	char name[NAME];
	uint16_t word;
	uint8_t object; /* index + 1 */
	bool pointer;   /* the object's address is passed */
	bool narrow, floating;
};

struct constant {
	char name[NAME];
	int64_t value;
};

struct parser {
	struct library_table *table;
	const char *file;
	unsigned line;
	const char *at; /* in the current line */
	bool has_library;
	uint32_t library;
	unsigned described[LIBRARY_FUNCTIONS]; /* in which line of this file */
	struct library_function *function;     /* the effects that follow are its; null: none yet */
	struct parameter parameter[PARAMETERS];
	unsigned parameters;
	struct parameter result;
	struct constant constant[CONSTANTS];
	unsigned constants;
	char *error;
	size_t error_size;
	jmp_buf failed;
};

static void fail(struct parser *p, const char *text, ...)
	__attribute__((format(printf, 2, 3), noreturn));
static void fail(struct parser *p, const char *text, ...)
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

static void skip_space(struct parser *p)
{
	while (*p->at == ' ' || *p->at == '\t')
		p->at++;
}

static bool at_end(struct parser *p)
{
	skip_space(p);
	return !*p->at;
}

static bool take(struct parser *p, char c)
{
	skip_space(p);
	if (*p->at != c)
		return false;
	p->at++;
	return true;
}

/* A name or a verb (which may have hyphens); "" if there is none. */
static void read_word(struct parser *p, char *word, bool hyphens)
{
	size_t length = 0;

	skip_space(p);
	for (; is_name(*p->at) || (hyphens && *p->at == '-'); p->at++) {
		if (length == NAME - 1)
			fail(p, "name too long");
		word[length++] = *p->at;
	}
	word[length] = 0;
}

/* The rest of the line must not hold anything. */
static void expect_end(struct parser *p)
{
	if (!at_end(p))
		fail(p, "unexpected \"%s\" at the end of the line", p->at);
}

static uint32_t add_text(struct parser *p, const char *text)
{
	struct library_table *table = p->table;
	size_t length = strlen(text) + 1;
	uint32_t offset = table->text_used;

	if (offset + length > LIBRARY_TEXT)
		fail(p, "the models are too large: out of room for names");
	memcpy(table->text + offset, text, length);
	table->text_used += length;
	return offset;
}

static uint32_t find_function(const struct parser *p, const char *name)
{
	for (uint32_t i = 0; i < p->table->functions; i++)
		if (strcmp(library_text(p->table, p->table->function[i].name), name) == 0)
			return i;
	return p->table->functions;
}

/* The function of this name; a new one has no effects yet. */
static struct library_function *need_function(struct parser *p, const char *name)
{
	struct library_table *table = p->table;
	uint32_t index = find_function(p, name);

	if (index == LIBRARY_FUNCTIONS)
		fail(p, "the models are too large: more than %d functions", LIBRARY_FUNCTIONS);
	if (!p->has_library)
		fail(p, "%s before the first \"library\" line", name);
	if (index == table->functions) {
		table->function[index] = (struct library_function){ .name = add_text(p, name),
								    .library = p->library };
		table->functions++;
	}
	return &table->function[index];
}

static unsigned find_object(const struct parser *p, const char *name)
{
	for (unsigned i = 0; i < p->table->objects; i++)
		if (strcmp(library_text(p->table, p->table->object[i].name), name) == 0)
			return i + 1;
	return 0;
}

static bool parse_number(const char *text, int64_t *value)
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
static int64_t read_constant(struct parser *p)
{
	int64_t value, all = 0;
	char word[NAME];

	do {
		bool negative = take(p, '-');

		read_word(p, word, false);
		if (!parse_number(word, &value) && !find_constant(p, word, &value))
			fail(p, "\"%s\" is neither a number nor a constant", word);
		all |= negative ? -value : value;
	} while (take(p, '|'));
	return all;
}

/* ---- values ---- */

static const struct parameter *find_parameter(struct parser *p, const char *name)
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
	if (!take(p, ')'))
		fail(p, "%s(…) is not closed", what);
}

/* ask(FUNCTION) */
static void read_question(struct parser *p, struct library_term *term)
{
	char word[NAME];

	read_word(p, word, false);
	if (!*word)
		fail(p, "ask(FUNCTION): which function?");
	term->source = LIBRARY_ANSWER;
	term->constant = need_function(p, word) - p->table->function;
	expect_closed(p, "ask");
}

/* NUMBER, CONSTANT, [*]PARAMETER, result, size([*]PARAMETER), pm([*]PARAMETER), ask(FUNCTION) */
static void read_term(struct parser *p, struct library_term *term)
{
	bool star = take(p, '*'), size = false, pm = false;
	const struct parameter *parameter;
	char word[NAME];

	read_word(p, word, false);
	if (strcmp(word, "ask") == 0 && take(p, '(')) {
		read_question(p, term);
		return;
	}
	size = strcmp(word, "size") == 0 && *p->at == '(';
	pm = strcmp(word, "pm") == 0 && *p->at == '(';
	if (size || pm) {
		p->at++;
		star = take(p, '*');
		read_word(p, word, false);
		expect_closed(p, size ? "size" : "pm");
	}
	if (!star && !size && !pm &&
	    (parse_number(word, &term->constant) || find_constant(p, word, &term->constant))) {
		term->source = LIBRARY_CONSTANT;
		return;
	}
	parameter = find_parameter(p, word);
	if (!parameter)
		fail(p, "\"%s\" is no parameter of %s", word,
		     library_text(p->table, p->function->name));
	if (parameter->floating)
		fail(p, "%s is a float, which effects cannot use", word);
	if (parameter->pointer && !star && size)
		fail(p, "%s points to an object: write size(*%s)", word, word);
	if (star && parameter->object && !parameter->pointer)
		fail(p, "%s is an object itself, not a pointer to one", word);
	if (size && (!parameter->object || !p->table->object[parameter->object - 1].sized))
		fail(p, "the size of %s is not known", word);
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
static void read_value(struct parser *p, struct library_value *value)
{
	char operation = '+';

	*value = (struct library_value){ 0 };
	skip_space(p);
	do {
		if (value->terms == LIBRARY_TERMS)
			fail(p, "more than %d terms in one value", LIBRARY_TERMS);
		value->term[value->terms].operation = operation;
		read_term(p, &value->term[value->terms++]);
		operation = *p->at;
	} while (operation && strchr("+-*", operation) && p->at++);
}

/* ---- conditions ---- */

static bool take_word(struct parser *p, const char *wanted)
{
	const char *start;
	char word[NAME];

	skip_space(p);
	start = p->at;
	read_word(p, word, true);
	if (strcmp(word, wanted) == 0)
		return true;
	p->at = start;
	return false;
}

/* [not] VALUE [& BITS] [== CONSTANT | != CONSTANT] */
static void read_condition(struct parser *p, struct library_condition *condition)
{
	bool negated = take_word(p, "not");

	*condition = (struct library_condition){ .mask = UINT64_MAX, .negated = true };
	read_value(p, &condition->value);
	if (take(p, '&'))
		condition->mask = read_constant(p);
	skip_space(p);
	if (strncmp(p->at, "==", 2) == 0 || strncmp(p->at, "!=", 2) == 0) {
		condition->negated = *p->at == '!';
		p->at += 2;
		condition->equals = read_constant(p);
	} else if (*p->at == '=') {
		fail(p, "equality is written ==");
	}
	condition->negated ^= negated;
}

static void read_conditions(struct parser *p, struct library_effect *effect)
{
	if (!take_word(p, "if"))
		return;
	do {
		if (effect->conditions == LIBRARY_CONDITIONS)
			fail(p, "more than %d conditions", LIBRARY_CONDITIONS);
		read_condition(p, &effect->condition[effect->conditions++]);
	} while (take_word(p, "and"));
}

/* ---- effects ---- */

static const struct verb {
	const char *name;
	uint8_t verb, least, most; /* numbers of values */
	uint8_t options;
	const char *usage;
} verbs[] = {
	{ "call", LIBRARY_CALL, 0, 0, 0, "call" },
	{ "no-call", LIBRARY_NO_CALL, 0, 0, 0, "no-call" },
	{ "returns", LIBRARY_RETURNS, 1, 1, 0, "returns VALUE" },
	{ "gives", LIBRARY_GIVES, 0, 0, 0, "gives FUNCTION" },
	{ "load", LIBRARY_LOAD, 2, 2, 0, "load ADDRESS SIZE" },
	{ "store", LIBRARY_STORE, 2, 2, LIBRARY_NONTEMPORAL | LIBRARY_OWN,
	  "store ADDRESS SIZE [nontemporal] [own]" },
	{ "flush", LIBRARY_FLUSH, 2, 2, 0, "flush ADDRESS SIZE" },
	{ "fence", LIBRARY_FENCE, 0, 0, LIBRARY_FULL, "fence [full]" },
	{ "persist", LIBRARY_PERSIST, 2, 2, LIBRARY_FULL, "persist ADDRESS SIZE [full]" },
	{ "durable", LIBRARY_DURABLE, 2, 2, LIBRARY_PAGES, "durable ADDRESS SIZE [pages]" },
	{ "volatile", LIBRARY_VOLATILE, 2, 2, 0, "volatile ADDRESS SIZE" },
	{ "tx-begin", LIBRARY_TX_BEGIN, 0, 1, 0, "tx-begin [POOL]" },
	{ "tx-add", LIBRARY_TX_ADD, 2, 2, LIBRARY_NO_FLUSH | LIBRARY_NO_SNAPSHOT,
	  "tx-add ADDRESS SIZE [no-flush] [no-snapshot]" },
	{ "tx-commit", LIBRARY_TX_COMMIT, 0, 0, 0, "tx-commit" },
	{ "tx-abort", LIBRARY_TX_ABORT, 0, 0, 0, "tx-abort" },
	{ "tx-end", LIBRARY_TX_END, 0, 0, 0, "tx-end" },
	{ "alloc", LIBRARY_ALLOC, 2, 2, LIBRARY_NO_FLUSH | LIBRARY_ATOMIC,
	  "alloc ADDRESS SIZE [no-flush] [atomic]" },
	{ "free", LIBRARY_FREE, 1, 2, 0, "free ADDRESS [SIZE]" },
	{ "reserve", LIBRARY_RESERVE, 3, 3, 0, "reserve ADDRESS SIZE ACTION" },
	{ "defer-free", LIBRARY_DEFER_FREE, 3, 3, 0, "defer-free ADDRESS SIZE ACTION" },
	{ "publish", LIBRARY_PUBLISH, 3, 3, 0, "publish ACTIONS COUNT SIZE-OF-ONE" },
	{ "cancel", LIBRARY_CANCEL, 3, 3, 0, "cancel ACTIONS COUNT SIZE-OF-ONE" },
	{ "discard", LIBRARY_DISCARD, 0, 0, 0, "discard" },
	{ "lock", LIBRARY_LOCK, 0, 1, 0, "lock [ADDRESS]" },
	{ "unlock", LIBRARY_UNLOCK, 0, 1, 0, "unlock [ADDRESS]" },
	{ "order", LIBRARY_ORDER, 0, 0, 0, "order" },
};

static const struct {
	const char *name;
	uint8_t option;
} options[] = {
	{ "nontemporal", LIBRARY_NONTEMPORAL },
	{ "full", LIBRARY_FULL },
	{ "no-flush", LIBRARY_NO_FLUSH },
	{ "no-snapshot", LIBRARY_NO_SNAPSHOT },
	{ "atomic", LIBRARY_ATOMIC },
	{ "pages", LIBRARY_PAGES },
	{ "own", LIBRARY_OWN },
};

static bool take_option(struct parser *p, const struct verb *verb, struct library_effect *effect)
{
	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
		if (verb->options & options[i].option && take_word(p, options[i].name)) {
			effect->options |= options[i].option;
			return true;
		}
	return false;
}

static bool at_condition(struct parser *p)
{
	const char *start = p->at;
	bool found = take_word(p, "if");

	p->at = start;
	return found;
}

static const struct verb *read_verb(struct parser *p)
{
	char word[NAME];

	read_word(p, word, true);
	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
		if (strcmp(verbs[i].name, word) == 0)
			return &verbs[i];
	fail(p,
	     "\"%s\" is no effect; effects are load, store, flush, fence, persist, durable, "
	     "volatile, tx-begin, tx-add, tx-commit, tx-abort, tx-end, alloc, free, reserve, defer-free, publish, cancel, discard, lock, unlock, order, "
	     "call, no-call, returns, gives",
	     *word ? word : p->at);
}

static bool says_when_it_runs(const struct parser *p)
{
	for (unsigned i = 0; i < p->function->effects; i++)
		if (p->table->effect[p->function->effect + i].verb <= LIBRARY_RETURNS)
			return true;
	return false;
}

static bool is_about_result(const struct library_effect *effect)
{
	for (unsigned i = 0; i < effect->conditions; i++)
		for (unsigned k = 0; k < effect->condition[i].value.terms; k++)
			if (effect->condition[i].value.term[k].source == LIBRARY_RESULT)
				return true;
	return false;
}

/* A `call` has come: effects before it that ask for the result wait for it, with their values. */
static void mark_conditional(struct parser *p, const struct library_effect *call)
{
	if (call->verb != LIBRARY_CALL)
		return;
	for (unsigned i = 0; i < p->function->effects; i++) {
		struct library_effect *effect = &p->table->effect[p->function->effect + i];

		effect->on_result = is_about_result(effect);
	}
}

static void read_effect(struct parser *p)
{
	struct library_table *table = p->table;
	struct library_effect *effect = &table->effect[table->effects];
	const struct verb *verb;
	char word[NAME];

	if (!p->function)
		fail(p, "an effect before the first function");
	if (table->effects == LIBRARY_EFFECTS)
		fail(p, "the models are too large: more than %d effects", LIBRARY_EFFECTS);
	verb = read_verb(p);
	if (verb->verb <= LIBRARY_RETURNS && says_when_it_runs(p))
		fail(p, "a second \"call\", \"no-call\" or \"returns\" for %s",
		     library_text(table, p->function->name));
	*effect = (struct library_effect){ .verb = verb->verb };
	if (verb->verb == LIBRARY_GIVES) {
		read_word(p, word, false);
		effect->gives = find_function(p, word);
		if (effect->gives == table->functions)
			fail(p, "gives: no model of %s before this line", *word ? word : "…");
	}
	while (!at_end(p) && !at_condition(p)) {
		if (take_option(p, verb, effect))
			continue;
		if (effect->values == verb->most)
			fail(p, "too much: %s", verb->usage);
		read_value(p, &effect->value[effect->values++]);
	}
	if (effect->values < verb->least)
		fail(p, "too little: %s", verb->usage);
	read_conditions(p, effect);
	expect_end(p);
	mark_conditional(p, effect);
	if (verb->verb == LIBRARY_TX_BEGIN)
		table->library[p->library].transactional = true;
	p->function->effects++;
	table->effects++;
}

/* ---- functions ---- */

/* [TYPE] [*] NAME; the name may be missing where a type could stand. */
static void read_typed_name(struct parser *p, struct parameter *parameter)
{
	char word[NAME];

	*parameter = (struct parameter){ 0 };
	read_word(p, word, false);
	parameter->object = find_object(p, word);
	parameter->narrow = strcmp(word, "int") == 0;
	parameter->floating = strcmp(word, "float") == 0;
	if (parameter->object || parameter->narrow || parameter->floating) {
		parameter->pointer = take(p, '*');
		if (parameter->pointer && !parameter->object)
			fail(p, "only objects can have a star here");
		read_word(p, word, false);
	}
	if (!*word)
		fail(p, "a name is missing before \"%s\"", p->at);
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
		fail(p, "too many parameters");
}

static void read_parameters(struct parser *p)
{
	unsigned registers = 0, stack = 0;

	p->parameters = 0;
	if (take(p, ')'))
		return;
	do {
		skip_space(p);
		if (strncmp(p->at, "...", 3) == 0) {
			p->at += 3;
			p->function->variadic = true;
			break;
		}
		if (p->parameters == PARAMETERS)
			fail(p, "too many parameters");
		read_typed_name(p, &p->parameter[p->parameters]);
		skip_space(p);
		if (*p->at && *p->at != ',' && *p->at != ')')
			fail(p,
			     "expected a comma or a parenthesis behind \"%s\": parameters are names, "
			     "without types of C",
			     p->parameter[p->parameters].name);
		if (find_parameter(p, p->parameter[p->parameters].name))
			fail(p, "two parameters are called %s", p->parameter[p->parameters].name);
		place_parameter(p, &p->parameter[p->parameters++], &registers, &stack);
	} while (take(p, ','));
	if (!take(p, ')'))
		fail(p, "the list of parameters is not closed");
	p->function->stack_words = stack;
}

static void read_function(struct parser *p)
{
	unsigned *described;

	take_word(p, "void"); /* as good as nothing */
	read_typed_name(p, &p->result);
	if (!take(p, '('))
		fail(p,
		     "\"%s\" starts no statement: expected \"library\", \"constant\", \"object\", "
		     "or a function with its parameters",
		     p->result.name);
	p->function = need_function(p, p->result.name);
	described = &p->described[p->function - p->table->function];
	if (*described)
		fail(p, "%s is described in line %u already", p->result.name, *described);
	*described = p->line;
	p->function->library = p->library;
	p->function->effect = p->table->effects;
	p->function->effects = 0;
	p->function->stack_words = 0;
	p->function->variadic = false;
	p->function->shipped = false;
	read_parameters(p);
	expect_end(p);
}

/* ---- other statements ---- */

/* A glob, up to the next space. */
static void read_glob(struct parser *p, char *glob)
{
	size_t length = 0;

	skip_space(p);
	for (; *p->at && !isspace((unsigned char)*p->at); p->at++) {
		if (length == NAME - 1)
			fail(p, "glob too long");
		glob[length++] = *p->at;
	}
	glob[length] = 0;
	if (!length)
		fail(p, "library: the name of its file is missing, as in libpmem.so*");
}

static void read_library(struct parser *p)
{
	struct library_table *table = p->table;
	struct library *library = &table->library[table->libraries];
	char glob[NAME];

	if (table->libraries == LIBRARY_LIBRARIES)
		fail(p, "more than %d libraries", LIBRARY_LIBRARIES);
	read_glob(p, glob);
	*library = (struct library){ .glob = add_text(p, glob) };
	library->anywhere = take_word(p, "anywhere");
	library->trusted = take_word(p, "trusted");
	expect_end(p);
	p->library = table->libraries++;
	p->has_library = true;
	p->function = NULL;
}

static void read_constant_statement(struct parser *p)
{
	struct constant *constant = &p->constant[p->constants];

	if (p->constants == CONSTANTS)
		fail(p, "more than %d constants", CONSTANTS);
	read_word(p, constant->name, false);
	if (!*constant->name || isdigit((unsigned char)*constant->name) || at_end(p))
		fail(p, "constant NAME NUMBER");
	constant->value = read_constant(p);
	expect_end(p);
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
		fail(p, "more than %d kinds of objects", LIBRARY_OBJECTS);
	*object = (struct library_object){ 0 };
	read_word(p, word, false);
	if (!*word || find_object(p, word))
		fail(p, *word ? "object %s: already there" : "%s%s", *word ? word : usage, "");
	object->name = add_text(p, word);
	read_word(p, word, false);
	if (!parse_number(word, &words) || words < 1 || words > 2 || !take_word(p, "address"))
		fail(p, "%s; WORDS is 1 or 2", usage);
	object->words = words;
	read_word(p, word, false);
	if (!*word)
		fail(p, "%s", usage);
	object->address = need_function(p, word) - p->table->function;
	if (take_word(p, "size")) {
		read_word(p, word, false);
		if (!*word)
			fail(p, "%s", usage);
		object->size = need_function(p, word) - p->table->function;
		object->sized = true;
	}
	expect_end(p);
	p->table->objects++;
}

static void read_statement(struct parser *p)
{
	if (take_word(p, "library"))
		read_library(p);
	else if (take_word(p, "constant"))
		read_constant_statement(p);
	else if (take_word(p, "object"))
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
	if (at_end(p))
		return;
	if (indented)
		read_effect(p);
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
