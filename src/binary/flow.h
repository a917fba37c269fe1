/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a region around an access may start: Algorithm 1 of vardalith.txt, for one function.
 *
 * A place in the code is good for an access if each way on from there leads to it, none of them
 * acquires anything before, and the address that it will touch can be told there already, as an
 * expression that is the same whichever way is taken. That is Definition 4. Going back from the
 * access, instruction by instruction, all that is needed is what is known of those that follow:
 * blocks, dominators and walks with special cases for loops, as in the paper, find fewer places.
 */
#ifndef BINARY_FLOW_H
#define BINARY_FLOW_H

#include <stdbool.h>
#include <stdint.h>

enum { FLOW_NONE = 255, FLOW_NOWHERE = UINT32_MAX };

/*
 * base + index * scale + displacement; or the base is what lies in the stack: at `slot` behind
 * that register. Registers by numbers, FLOW_NONE for none.
 */
struct flow_expression {
	uint8_t base, index, scale;
	bool in_stack;
	int32_t slot, displacement;
};

/* An instruction: up to two that may follow, or more of them in a list; none: it is an exit. */
struct flow_node {
	uint32_t next[2]; /* or FLOW_NOWHERE */
	uint32_t more, mores;
	bool acquires;
	bool unknown; /* who knows where it goes */
};

struct flow {
	struct flow_node *node;
	uint32_t nodes;
	uint32_t *more; /* those that follow indirect jumps */
	/* The expression before this instruction, from that behind it; false if there is none. */
	bool (*step)(void *context, uint32_t node, struct flow_expression *e);
	void *context;
};

struct flow_start {
	uint32_t node; /* before this instruction */
	struct flow_expression expression;
};

/*
 * What is known before each instruction: the expressions of all ways from there to the access. Only
 * one is good; with several, those before may still agree again.
 */
enum { FLOW_EXPRESSIONS = 4 };
struct flow_place {
	bool bad; /* some way does not lead there, or acquires, or has no expression */
	uint8_t count;
	struct flow_expression expression[FLOW_EXPRESSIONS];
};

static inline bool flow_is_good(const struct flow_place *place)
{
	return !place->bad && place->count == 1;
}

/*
 * The earliest starts for an access, at most `most` of them: their number. `place` has room for
 * all nodes. If there are more than that, the only start is the access itself.
 */
uint32_t flow_find(const struct flow *flow, uint32_t access, const struct flow_expression *e,
		   struct flow_place *place, struct flow_start *start, uint32_t most);

#endif
