/* SPDX-License-Identifier: BSD-3-Clause */
/* The parser of library models, for its own parts: words.c, effects.c, parse.c. */
#ifndef LIBRARY_PARSER_H
#define LIBRARY_PARSER_H

#include <setjmp.h>
#include <stddef.h>

#include "library/library.h"

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

/* ---- words.c ---- */

/* Ends parsing with "file:line: …" as the reason. */
void parser_fail(struct parser *p, const char *text, ...)
	__attribute__((format(printf, 2, 3), noreturn));

void parser_skip_space(struct parser *p);
bool parser_at_end(struct parser *p);
/* Takes a character, or a word, if it comes next. */
bool parser_take(struct parser *p, char c);
bool parser_take_word(struct parser *p, const char *wanted);
/* A name or a verb (which may have hyphens); "" if there is none. */
void parser_read_word(struct parser *p, char *word, bool hyphens);
/* The rest of the line must not hold anything. */
void parser_expect_end(struct parser *p);

uint32_t parser_add_text(struct parser *p, const char *text);
/* The function of this name; the number of functions if there is none. */
uint32_t parser_find_function(const struct parser *p, const char *name);
/* The same, but a new one without effects if there is none. */
struct library_function *parser_need_function(struct parser *p, const char *name);
/* Index + 1; 0 if there is none. */
unsigned parser_find_object(const struct parser *p, const char *name);
const struct parameter *parser_find_parameter(struct parser *p, const char *name);

bool parser_parse_number(const char *text, int64_t *value);
int64_t parser_read_constant(struct parser *p);
void parser_read_value(struct parser *p, struct library_value *value);
/* "if …", if it is there. */
void parser_read_conditions(struct parser *p, struct library_effect *effect);

/* ---- effects.c ---- */

void parser_read_effect(struct parser *p);

#endif
