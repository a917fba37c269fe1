/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What recoveries store and never make persistent: judged if another crash may follow, by the same
 * rule as the program itself. What no later recovery reads is transient.
 */
#include <stdlib.h>

#include "drive/engine.h"

static bool is_known(const struct engine *engine, uint32_t stack)
{
	for (uint32_t i = 0; i < engine->losts; i++)
		if (engine->lost[i].stack == stack)
			return true;
	return false;
}

void lost_note(struct engine *engine, const struct leaf *leaf)
{
	const struct history *history = &leaf->history;

	for (uint32_t i = 0; i < history->lines; i++)
		for (uint32_t k = 0; k < history->line[i].parts; k++) {
			const struct history_part *part =
				&history->part[history->line[i].first + k];
			const struct history_event *event = &history->event[part->event];
			struct raw_finding *lost;
			uint32_t flush;

			if (part->settled != HISTORY_NEVER || event->flags & HISTORY_LIBRARY ||
			    !event->stack || is_known(engine, event->stack))
				continue;
			engine->lost = realloc(engine->lost,
					       (engine->losts + 1ul) * sizeof(*engine->lost));
			if (!engine->lost)
				abort();
			lost = &engine->lost[engine->losts++];
			*lost = (struct raw_finding){
				.kind = KIND_MISSING_FLUSH,
				.stack = event->stack,
				.thread = event->thread,
				.address = event->address,
				.size = event->size,
			};
			if (history_why_uncertain(history, history->line[i].address, part,
						  history->events, &flush) == HISTORY_NOT_FENCED) {
				lost->kind = KIND_MISSING_FENCE;
				if (flush != HISTORY_NEVER)
					lost->other = history->event[flush].stack;
			}
		}
}

void lost_report(struct engine *engine)
{
	const uint8_t *read = engine->checker.stage_read;

	for (uint32_t i = 0; i < engine->losts; i++) {
		uint32_t stack = engine->lost[i].stack;

		if (stack / 8 < engine->checker.stage_reads && read[stack / 8] >> stack % 8 & 1)
			check_mark_read(engine->check, stack);
		checkers_report(&engine->lost[i], UINT32_MAX);
	}
	free(engine->lost);
	engine->lost = NULL;
	engine->losts = 0;
}
