/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads that are noted without a hook: what that needs to know, and who else writes it. */
#ifndef RACES_BRIEF_H
#define RACES_BRIEF_H

#include "races/table.h"
#include "runtime/context.h"

/* What of a load is known before it comes, by the number of its site. */
struct brief_site {
	struct stack_place place; /* of its frame; unknown: it needs a hook */
	uint8_t size;
	bool acquires;
};
extern HIDDEN struct brief_site *brief_sites; /* null: there are none */

/* Makes room for them. */
HIDDEN void brief_start(void);
/* A load by a site that brief_wants: false if it needs a hook. */
struct binary_brief;
HIDDEN bool brief_load(uint64_t address, const struct binary_brief *kept);

static inline uint64_t brief_bytes(uint64_t address, unsigned size)
{
	return (size < LINE ? (1ull << size) - 1 : ~0ull) << address % LINE;
}

/* Whether all is said about a load of what is open. */
static inline struct racer_judged brief_judged(uint64_t address, uint32_t site, uint32_t stack,
					       uint32_t version)
{
	return (struct racer_judged){ address / LINE << 22 ^ site, stack, version };
}

/* Its place among those. */
static inline unsigned brief_mark(struct racer_judged judged)
{
	return (judged.key >> 22 ^ judged.key * 5 ^ judged.stack) % RACES_JUDGED;
}

/* At the end of the journal, where there must be room. */
static inline void brief_note(struct racer *self, uint64_t address, uint64_t size, uint32_t site,
			      uint32_t stack, uint32_t version)
{
	*self->next++ = (struct racer_note){
		.where = address | size << RACES_SIZE_SHIFT,
		.site = site,
		.stack = stack,
		.version = version,
		.epoch = self->epoch,
	};
}

#endif
