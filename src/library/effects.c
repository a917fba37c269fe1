/* SPDX-License-Identifier: BSD-3-Clause */
/* Effects of library models: one indented line each. */
#include "library/parser.h"

#include <string.h>

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
	{ "alloc", LIBRARY_ALLOC, 2, 2, LIBRARY_NO_FLUSH | LIBRARY_ATOMIC | LIBRARY_FILLED,
	  "alloc ADDRESS SIZE [no-flush] [atomic] [filled]" },
	{ "free", LIBRARY_FREE, 1, 2, 0, "free ADDRESS [SIZE]" },
	{ "reserve", LIBRARY_RESERVE, 3, 3, 0, "reserve ADDRESS SIZE ACTION" },
	{ "defer-free", LIBRARY_DEFER_FREE, 3, 3, 0, "defer-free ADDRESS SIZE ACTION" },
	{ "publish", LIBRARY_PUBLISH, 3, 3, 0, "publish ACTIONS COUNT SIZE-OF-ONE" },
	{ "cancel", LIBRARY_CANCEL, 3, 3, 0, "cancel ACTIONS COUNT SIZE-OF-ONE" },
	{ "discard", LIBRARY_DISCARD, 0, 0, 0, "discard" },
	{ "lock", LIBRARY_LOCK, 0, 1, 0, "lock [ADDRESS]" },
	{ "unlock", LIBRARY_UNLOCK, 0, 1, 0, "unlock [ADDRESS]" },
	{ "order", LIBRARY_ORDER, 0, 0, 0, "order" },
	{ "verify-begin", LIBRARY_VERIFY_BEGIN, 0, 0, 0, "verify-begin" },
	{ "verify-end", LIBRARY_VERIFY_END, 0, 0, 0, "verify-end" },
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
	{ "filled", LIBRARY_FILLED },
	{ "pages", LIBRARY_PAGES },
	{ "own", LIBRARY_OWN },
};

static bool take_option(struct parser *p, const struct verb *verb, struct library_effect *effect)
{
	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
		if (verb->options & options[i].option && parser_take_word(p, options[i].name)) {
			effect->options |= options[i].option;
			return true;
		}
	return false;
}

static bool at_condition(struct parser *p)
{
	const char *start = p->at;
	bool found = parser_take_word(p, "if");

	p->at = start;
	return found;
}

static const struct verb *read_verb(struct parser *p)
{
	char word[NAME];

	parser_read_word(p, word, true);
	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
		if (strcmp(verbs[i].name, word) == 0)
			return &verbs[i];
	parser_fail(
		p,
		"\"%s\" is no effect; effects are load, store, flush, fence, persist, durable, "
		"volatile, tx-begin, tx-add, tx-commit, tx-abort, tx-end, alloc, free, reserve, defer-free, publish, cancel, discard, lock, unlock, order, "
		"verify-begin, verify-end, "
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

void parser_read_effect(struct parser *p)
{
	struct library_table *table = p->table;
	struct library_effect *effect = &table->effect[table->effects];
	const struct verb *verb;
	char word[NAME];

	if (!p->function)
		parser_fail(p, "an effect before the first function");
	if (table->effects == LIBRARY_EFFECTS)
		parser_fail(p, "the models are too large: more than %d effects", LIBRARY_EFFECTS);
	verb = read_verb(p);
	if (verb->verb <= LIBRARY_RETURNS && says_when_it_runs(p))
		parser_fail(p, "a second \"call\", \"no-call\" or \"returns\" for %s",
			    library_text(table, p->function->name));
	*effect = (struct library_effect){ .verb = verb->verb };
	if (verb->verb == LIBRARY_GIVES) {
		parser_read_word(p, word, false);
		effect->gives = parser_find_function(p, word);
		if (effect->gives == table->functions)
			parser_fail(p, "gives: no model of %s before this line",
				    *word ? word : "…");
	}
	while (!parser_at_end(p) && !at_condition(p)) {
		if (take_option(p, verb, effect))
			continue;
		if (effect->values == verb->most)
			parser_fail(p, "too much: %s", verb->usage);
		parser_read_value(p, &effect->value[effect->values++]);
	}
	if (effect->values < verb->least)
		parser_fail(p, "too little: %s", verb->usage);
	parser_read_conditions(p, effect);
	parser_expect_end(p);
	mark_conditional(p, effect);
	if (verb->verb == LIBRARY_TX_BEGIN)
		table->library[p->library].transactional = true;
	p->function->effects++;
	table->effects++;
}
