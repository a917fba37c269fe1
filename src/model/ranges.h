/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A set of address ranges that do not overlap, each with a label: a treap in memory of the
 * caller's. Entries are never removed one by one, only all at once.
 */
#ifndef MODEL_RANGES_H
#define MODEL_RANGES_H

#include <stdbool.h>
#include <stdint.h>

struct range {
	uint64_t start, end;
	uint32_t stack; /* who put it there */
	uint32_t flags; /* the caller's */
	uint32_t left, right, priority;
};

struct ranges {
	struct range *node; /* entry 0 is never used */
	uint32_t capacity, used, root;
	uint32_t random;
};

static inline void ranges_init(struct ranges *ranges, struct range *node, uint32_t capacity)
{
	*ranges = (struct ranges){ .node = node, .capacity = capacity, .random = 1 };
}

static inline void ranges_clear(struct ranges *ranges)
{
	ranges->used = ranges->root = 0;
}

/* The first range that ends after `address`; null if there is none. */
struct range *ranges_after(const struct ranges *ranges, uint64_t address);

/* Puts a range in that overlaps none of the others. False if there is no room. */
bool ranges_add(struct ranges *ranges, uint64_t start, uint64_t end, uint32_t stack,
		uint32_t flags);

#endif
