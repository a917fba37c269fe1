/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Library models: what the functions of a library do to persistent memory, as data. The command
 * reads them from text (parse.h, docs/models.md) into this table, which lies in the session; the
 * runtime puts hooks on the functions and tells their effects as events.
 *
 * Plain data without pointers; `text` offsets name strings in the table's own text.
 */
#ifndef LIBRARY_LIBRARY_H
#define LIBRARY_LIBRARY_H

#include <stdbool.h>
#include <stdint.h>

enum {
	LIBRARY_LIBRARIES = 128,
	LIBRARY_FUNCTIONS = 2048,
	LIBRARY_EFFECTS = 8192,
	LIBRARY_OBJECTS = 32,
	LIBRARY_TEXT = 1 << 17,
	LIBRARY_REGISTERS = 6,    /* words that are passed in registers */
	LIBRARY_STACK_WORDS = 32, /* words passed on the stack that a hook hands on */
	LIBRARY_TERMS = 3,
	LIBRARY_CONDITIONS = 3,
};

enum library_verb {
	LIBRARY_CALL,    /* here the function itself runs */
	LIBRARY_NO_CALL, /* it does not run: the effects are all that it does */
	LIBRARY_RETURNS, /* it does not run, and this is its result */
	LIBRARY_GIVES,   /* its result is a function that does what another model says */
	LIBRARY_LOAD,
	LIBRARY_STORE,
	LIBRARY_FLUSH,
	LIBRARY_FENCE,
	LIBRARY_PERSIST,
	LIBRARY_DURABLE,
	LIBRARY_VOLATILE,
	LIBRARY_TX_BEGIN,
	LIBRARY_TX_ADD,
	LIBRARY_TX_COMMIT,
	LIBRARY_TX_ABORT,
	LIBRARY_TX_END,
	LIBRARY_ALLOC,
	LIBRARY_FREE,
	LIBRARY_RESERVE,
	LIBRARY_DEFER_FREE,
	LIBRARY_PUBLISH,
	LIBRARY_CANCEL,
	LIBRARY_DISCARD,
	LIBRARY_LOCK,
	LIBRARY_UNLOCK,
	LIBRARY_ORDER,
	LIBRARY_VERIFY_BEGIN,
	LIBRARY_VERIFY_END,
};

enum library_option {
	LIBRARY_NONTEMPORAL = 1 << 0,
	LIBRARY_FULL = 1 << 1,        /* fence: orders loads as well, is never redundant */
	LIBRARY_NO_FLUSH = 1 << 2,    /* tx-add, alloc: the commit does not flush it */
	LIBRARY_NO_SNAPSHOT = 1 << 3, /* tx-add: may be written, will not be restored */
	LIBRARY_FILLED = 1 << 7,      /* alloc: the library sets the content */
	LIBRARY_ATOMIC = 1 << 4,      /* alloc: at once, whatever becomes of the transaction */
	LIBRARY_PAGES = 1 << 5,       /* durable: from the start of the first page */
	LIBRARY_OWN = 1 << 6,         /* store: no matter for transactions */
};

enum library_source {
	LIBRARY_CONSTANT,
	LIBRARY_WORD,
	LIBRARY_RESULT,
	LIBRARY_ANSWER, /* of a function without parameters; `constant` is its index */
};

struct library_term {
	char operation;    /* + - *; the first term's is + */
	uint8_t source;    /* enum library_source */
	uint8_t object;    /* index + 1 if it is an object: then its address is meant … */
	bool size;         /* … or its size */
	bool pm;           /* whether the address lies in PM: 0 or 1 */
	bool dereferenced; /* the word is the address of the value */
	bool narrow;       /* an int: sign-extended from 32 bits */
	uint16_t word;     /* of the parameters */
	int64_t constant;
};

/* Terms, worked out from left to right. */
struct library_value {
	uint8_t terms;
	struct library_term term[LIBRARY_TERMS];
};

struct library_condition {
	struct library_value value;
	uint64_t mask;  /* applied first */
	int64_t equals; /* holds if the masked value is this … */
	bool negated;   /* … or is not */
};

struct library_effect {
	uint8_t verb;    /* enum library_verb */
	uint8_t options; /* enum library_option */
	uint8_t values, conditions;
	bool on_result; /* before the call, but depends on its result: happens after it */
	uint32_t gives; /* function index */
	struct library_value value[3];
	struct library_condition condition[LIBRARY_CONDITIONS];
};

struct library_function {
	uint32_t name;    /* text */
	uint32_t library; /* index */
	uint32_t effect;  /* the first one; they follow each other */
	uint16_t effects;
	uint16_t stack_words;
	bool variadic; /* further arguments, nobody knows how many */
	bool shipped;  /* comes with Perdure: no surprise if the program has it not */
	bool found;    /* some process has it */
};

struct library {
	uint32_t glob;      /* text; what the object's file name looks like, "*" for any */
	bool anywhere;      /* its functions may be linked into another object */
	bool trusted;       /* what its prebuilt code does to PM is not judged */
	bool transactional; /* has transactions */
	bool shipped;
};

/* A value of several words that stands for a piece of memory, such as PMEMoid. */
struct library_object {
	uint32_t name, words;
	uint32_t address; /* the function that gives its address … */
	uint32_t size;    /* … and its size, if that is known */
	bool sized;
};

struct library_table {
	uint32_t libraries, functions, effects, objects, text_used;
	struct library library[LIBRARY_LIBRARIES];
	struct library_object object[LIBRARY_OBJECTS];
	struct library_function function[LIBRARY_FUNCTIONS];
	struct library_effect effect[LIBRARY_EFFECTS];
	char text[LIBRARY_TEXT];
};

static inline const char *library_text(const struct library_table *table, uint32_t offset)
{
	return table->text + offset;
}

#endif
