/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/transactions.h"

void transactions_init(struct transactions *tx, struct range *memory, uint32_t count)
{
	*tx = (struct transactions){ 0 };
	ranges_init(&tx->log, memory, count);
	ranges_init(&tx->freed, memory + count, count);
}

void transactions_begin(struct transactions *tx, uint32_t stack, uint64_t low, uint64_t high)
{
	if (!tx->depth) {
		tx->low = low;
		tx->high = high ? high : UINT64_MAX;
	}
	if (tx->depth < TRANSACTIONS_DEPTH)
		tx->level[tx->depth] = (struct transactions_level){ stack, true };
	tx->depth++;
}

/* Puts the parts of [start, end) in that are not there yet. */
static void fill_gaps(struct transactions *tx, struct ranges *ranges, uint64_t start, uint64_t end,
		      uint32_t stack, uint32_t flags)
{
	while (start < end) {
		const struct range *next = ranges_after(ranges, start);
		uint64_t stop = next && next->start < end ? next->start : end;

		if (stop > start && !ranges_add(ranges, start, stop, stack, flags))
			tx->full = true;
		if (stop == end)
			return;
		next = ranges_after(ranges, start < stop ? stop : start);
		start = next ? next->end : end;
	}
}

static uint64_t overlap(const struct range *range, uint64_t start, uint64_t end)
{
	return (range->end < end ? range->end : end) -
	       (range->start > start ? range->start : start);
}

uint32_t transactions_add(struct transactions *tx, uint64_t address, uint64_t size, uint32_t stack,
			  uint32_t flags, uint64_t *again)
{
	uint64_t end = address + size;
	struct range *range;
	uint32_t earlier = 0;

	*again = 0;
	if (!transactions_working(tx) || !size)
		return 0;
	for (range = ranges_after(&tx->log, address); range && range->start < end;
	     range = ranges_after(&tx->log, range->end)) {
		if (range->flags & TRANSACTIONS_LOGGED) {
			earlier = earlier ? earlier : range->stack;
			*again += overlap(range, address, end);
		}
		range->flags &= flags | ~(TRANSACTIONS_NO_FLUSH | TRANSACTIONS_NO_SNAPSHOT);
	}
	fill_gaps(tx, &tx->log, address, end, stack, TRANSACTIONS_LOGGED | flags);
	return earlier;
}

void transactions_alloc(struct transactions *tx, uint64_t address, uint64_t size, uint32_t stack,
			uint32_t flags)
{
	if (transactions_working(tx))
		fill_gaps(tx, &tx->log, address, address + size, stack, TRANSACTIONS_NEW | flags);
}

bool transactions_free(struct transactions *tx, uint64_t address, uint64_t size, uint32_t stack)
{
	if (!transactions_working(tx))
		return false;
	fill_gaps(tx, &tx->freed, address, address + size, stack, TRANSACTIONS_FREED);
	return true;
}

struct settling {
	struct lines *lines;
	struct lines_thread *thread;
	bool commit, flushes;
	uint32_t stack;
};

static void settle(const struct settling *s, const struct ranges *ranges)
{
	const uint64_t inside = LINES_LINE_SIZE - 1;
	uint32_t gone =
		s->commit ? TRANSACTIONS_FREED : TRANSACTIONS_NEW | TRANSACTIONS_NO_SNAPSHOT;
	uint32_t kept = TRANSACTIONS_NO_FLUSH | TRANSACTIONS_FREED | TRANSACTIONS_ATOMIC;

	for (uint32_t i = 1; i <= ranges->used; i++) {
		const struct range *range = &ranges->node[i];
		uint64_t start = range->start & ~inside, end = (range->end + inside) & ~inside;

		if (range->flags & gone && !(range->flags & TRANSACTIONS_ATOMIC))
			lines_forget(s->lines, s->thread, range->start, range->end - range->start);
		else if (s->flushes && !(range->flags & kept))
			lines_persist(s->lines, s->thread, start, end - start, s->stack);
	}
}

bool transactions_finish(struct transactions *tx, struct lines *lines, struct lines_thread *thread,
			 bool commit, bool flushes, uint32_t stack)
{
	struct settling settling = { lines, thread, commit, flushes, stack };
	bool any;

	if (!transactions_working(tx))
		return false;
	tx->level[tx->depth - 1].working = false;
	if (tx->depth > 1)
		return false;
	if (tx->reservations)
		reservations_finish(tx->reservations, lines, thread, commit);
	settle(&settling, &tx->log);
	settle(&settling, &tx->freed);
	any = tx->log.used || tx->freed.used;
	if (any && flushes)
		lines_fence(lines, thread, stack, false);
	ranges_clear(&tx->log);
	ranges_clear(&tx->freed);
	return any;
}

void transactions_end(struct transactions *tx)
{
	if (tx->depth)
		tx->depth--;
}

void transactions_drop(struct transactions *tx, struct lines *lines, struct lines_thread *thread)
{
	for (uint32_t i = 1; tx->depth && i <= tx->log.used; i++) {
		const struct range *range = &tx->log.node[i];

		if (!(range->flags & TRANSACTIONS_ATOMIC))
			lines_forget_thread(lines, thread, range->start, range->end - range->start,
					    tx->thread);
	}
	tx->depth = 0;
	ranges_clear(&tx->log);
	ranges_clear(&tx->freed);
}

/* The end of what the set covers without a gap from `address` on. */
static uint64_t covered_until(const struct ranges *ranges, uint64_t address)
{
	const struct range *range = ranges_after(ranges, address);

	return range && range->start <= address ? range->end : address;
}

bool transactions_protects(const struct transactions *tx, uint64_t address, uint64_t size)
{
	uint64_t end = address + size, next;

	if (!transactions_working(tx))
		return false;
	for (; address < end; address = next) {
		next = covered_until(&tx->log, address);
		if (next == address && tx->reservations)
			next = reservations_until(tx->reservations, tx->process, address);
		if (next == address)
			return tx->full;
	}
	return true;
}

bool transactions_covers(const struct transactions *tx, uint64_t address, uint64_t size)
{
	if (!transactions_working(tx) || address >= tx->high || address + size <= tx->low)
		return true;
	return transactions_protects(tx, address, size);
}
