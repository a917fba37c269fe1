/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads that are noted without a hook: what that needs to know, and who else writes it. */
#ifndef RACES_BRIEF_H
#define RACES_BRIEF_H

#include "races/table.h"

/* What of a load is known before it comes, by the number of its site. */
struct brief_site {
	uintptr_t pc; /* as stacks call it */
	struct stack_place place;
	uint8_t size;
	bool acquires;
};
extern HIDDEN struct brief_site *brief_sites; /* null: there are none */

/* Makes room for them. */
HIDDEN void brief_start(void);
/* A load by a site that brief_wants: false if it needs a hook. */
struct binary_brief;
HIDDEN bool brief_load(uint64_t address, const struct binary_brief *kept);

/* The context of the function whose frame is there now; null if it is not known. */
static inline struct stack_context *brief_context(struct racer *self, struct stack_place place,
						  uintptr_t sp, uintptr_t rbp)
{
	const uint64_t *at = (const uint64_t *)((place.by_rbp ? rbp : sp) + place.above);
	struct stack_context *context =
		&self->context[((uintptr_t)at >> 3 ^ *at >> 1) % RACES_CONTEXTS];

	if (context->word[0].at != at || (context->by_rbp && context->rbp != rbp))
		return NULL;
	for (unsigned i = 0; i < context->words; i++)
		if (*context->word[i].at != context->word[i].value)
			return NULL;
	return context;
}

/* Whether all is said about a load of what is open. */
static inline struct racer_judged brief_judged(uint64_t address, uint32_t site, uint32_t stack,
					       uint32_t version)
{
	return (struct racer_judged){ address / LINE << 22 ^ site, stack, version };
}

static inline struct racer_judged *brief_judged_at(struct racer *self, struct racer_judged judged)
{
	return &self->judged[(judged.key >> 22 ^ judged.key * 5 ^ judged.stack) % RACES_JUDGED];
}

static inline void brief_note(struct racer *self, uint64_t address, uint64_t size, uint32_t site,
			      uint32_t stack, uint32_t version)
{
	self->note[self->notes++] = (struct racer_note){
		.where = address | size << RACES_SIZE_SHIFT,
		.site = site,
		.stack = stack,
		.version = version,
		.epoch = self->epoch,
	};
}

#endif
