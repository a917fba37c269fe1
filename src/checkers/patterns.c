/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Missing and extra flushes and fences: the universal oracles of agamotto.txt §4.2.1, with the
 * store named that is lost, and with Px86 precision about who orders what.
 *
 * Cannot see: whether a lost store matters to a recovery, and stores that were persisted in the
 * wrong order.
 */
#include "checkers/checkers.h"

/* An owner number no thread has: the coordinator, alone at the end. */
#define COORDINATOR UINT32_MAX

static void redundant_flush(struct lines *lines, const struct lines_thread *thread,
			    uint64_t address, uint32_t stack, uint32_t earlier)
{
	(void)lines;
	checkers_report(
		&(struct raw_finding){
			.kind = KIND_REDUNDANT_FLUSH,
			.stack = stack,
			.other = earlier,
			.thread = thread->id,
			.address = address,
			.size = LINES_LINE_SIZE,
		},
		thread->owner);
}

static void redundant_fence(struct lines *lines, const struct lines_thread *thread, uint32_t stack,
			    uint32_t earlier)
{
	(void)lines;
	checkers_report(
		&(struct raw_finding){
			.kind = KIND_REDUNDANT_FENCE,
			.stack = stack,
			.other = earlier,
			.thread = thread->id,
		},
		thread->owner);
}

static void overwritten(struct lines *lines, const struct lines_thread *thread, uint64_t address,
			unsigned size, const struct lines_store *old, uint32_t stack)
{
	(void)lines;
	checkers_report(
		&(struct raw_finding){
			.kind = KIND_OVERWRITE_UNPERSISTED,
			.stack = old->stack,
			.other = stack,
			.thread = thread->id,
			.address = address,
			.size = size,
		},
		thread->owner);
}

static void lost(struct lines *lines, const struct lines_thread *thread, uint64_t address,
		 unsigned size, const struct lines_store *store, uint32_t flush)
{
	(void)lines;
	checkers_report(
		&(struct raw_finding){
			.kind = flush ? KIND_MISSING_FENCE : KIND_MISSING_FLUSH,
			.stack = store->stack,
			.other = store->nontemporal ? 0 : flush,
			.thread = store->thread,
			.address = address,
			.size = size,
			.event = store->event,
		},
		thread ? thread->owner : COORDINATOR);
}

const struct lines_listener pattern_checker = {
	.redundant_flush = redundant_flush,
	.redundant_fence = redundant_fence,
	.overwritten = overwritten,
	.lost = lost,
};
