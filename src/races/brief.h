/* SPDX-License-Identifier: BSD-3-Clause */
/* Accesses that are noted without a hook: what that needs to know, and who else writes it. */
#ifndef RACES_BRIEF_H
#define RACES_BRIEF_H

#include "races/table.h"
#include "runtime/context.h"

/* What of an access is known before it comes, by the number of its site. */
struct brief_site {
	union {
		uint64_t bytes; /* as many bits as it loads or stores */
		uintptr_t pc;   /* in the first run */
	};
	struct stack_place place; /* of its frame; unknown: it needs a hook */
	uint8_t size;
	bool stores, loads, acquires;
	bool locks;    /* it loads words of locks */
	bool plain;    /* it loads data, and its place is known */
	uint8_t known; /* in the first run: what its hook has learnt */
};
extern HIDDEN struct brief_site *brief_sites; /* null: there are none */

/* Makes room for them. */
HIDDEN void brief_start(void);

/*
 * A few instructions further on, and with the same return address in the same place, the function
 * is still the one that it was, called from where it was: unless it has been left in between and
 * entered again, and has not come by anything that was asked about until here.
 */
static inline bool brief_is_further_on(const struct racer *self, const uint64_t *at, uint32_t site)
{
	enum { NEAR = 16 };

	return self->journal.at == at && self->journal.value == *at &&
	       site - self->journal.site - 1 < NEAR;
}

/*
 * The same for a function that has been left and entered again, if nothing else was asked about in
 * between: who has called it is looked at, and who has called those, but not all the way up.
 */
static inline bool brief_is_back(const struct racer *self, const uint64_t *at, uint64_t rbp)
{
	enum { NEAR = 6 };
	const struct stacks_context *c = self->journal.context;

	return self->journal.at == at && self->journal.value == *at &&
	       context_is_still(c, at, *at, rbp, c->words < NEAR ? c->words : NEAR);
}

/* At the end of the journal, where there must be room. */
static inline void brief_note(struct racer *self, uint64_t address, uint32_t site, uint32_t stack,
			      uint32_t version)
{
	*self->journal.next++ = (struct racer_note){ address, site, stack, version, self->epoch };
}

#endif
