/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Misuse of transactions: the redundant undo log oracle and the atomic operation oracle of
 * agamotto.txt §4.2.2, by bytes.
 *
 * Cannot see: a store that a library makes for itself, and data that no transaction touches.
 */
#include "checkers/checkers.h"

void check_duplicate_add(const struct lines_thread *thread, uint64_t address, uint64_t size,
			 uint64_t again, uint32_t stack, uint32_t earlier)
{
	checkers_report(
		&(struct raw_finding){
			.kind = KIND_DUPLICATE_TX_ADD,
			.stack = stack,
			.other = earlier,
			.thread = thread->id,
			.address = address,
			.size = size,
			.part = again,
		},
		thread->owner);
}

void check_unlogged_store(const struct lines_thread *thread, uint64_t address, uint64_t size,
			  uint32_t stack, uint32_t begin, uint32_t place)
{
	checkers_report(
		&(struct raw_finding){
			.kind = KIND_STORE_OUTSIDE_TX,
			.stack = stack,
			.other = begin,
			.thread = thread->id,
			.address = address,
			.size = size,
			.place = place,
		},
		thread->owner);
}
