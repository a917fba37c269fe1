/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/ranges.h"

#include <stddef.h>

struct range *ranges_after(const struct ranges *ranges, uint64_t address)
{
	struct range *found = NULL;
	uint32_t at = ranges->root;

	while (at) {
		struct range *range = &ranges->node[at];

		if (range->end > address) {
			found = range;
			at = range->left;
		} else {
			at = range->right;
		}
	}
	return found;
}

static uint32_t next_random(struct ranges *ranges)
{
	uint32_t x = ranges->random;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	ranges->random = x;
	return x;
}

/* Splits a tree into what starts before `address` and the rest. */
static void split(struct range *node, uint32_t tree, uint64_t address, uint32_t *left,
		  uint32_t *right)
{
	while (tree) {
		if (node[tree].start < address) {
			*left = tree;
			left = &node[tree].right;
			tree = node[tree].right;
		} else {
			*right = tree;
			right = &node[tree].left;
			tree = node[tree].left;
		}
	}
	*left = *right = 0;
}

bool ranges_add(struct ranges *ranges, uint64_t start, uint64_t end, uint32_t stack, uint32_t flags)
{
	struct range *node = ranges->node;
	uint32_t *at = &ranges->root, number;

	if (ranges->used + 1 >= ranges->capacity)
		return false;
	number = ++ranges->used;
	node[number] = (struct range){ start, end, stack, flags, 0, 0, next_random(ranges) };
	while (*at && node[*at].priority >= node[number].priority)
		at = start < node[*at].start ? &node[*at].left : &node[*at].right;
	split(node, *at, start, &node[number].left, &node[number].right);
	*at = number;
	return true;
}
