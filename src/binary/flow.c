/* SPDX-License-Identifier: BSD-3-Clause */
#include "binary/flow.h"

static bool same(const struct flow_expression *a, const struct flow_expression *b)
{
	return a->base == b->base && a->index == b->index && a->scale == b->scale &&
	       a->in_stack == b->in_stack && a->slot == b->slot &&
	       a->displacement == b->displacement;
}

static uint32_t followers(const struct flow *flow, uint32_t node)
{
	const struct flow_node *n = &flow->node[node];

	return 2 + n->mores;
}

static uint32_t follower(const struct flow *flow, uint32_t node, uint32_t i)
{
	const struct flow_node *n = &flow->node[node];

	return i < 2 ? n->next[i] : flow->more[n->more + i - 2];
}

static bool add(struct flow_place *place, const struct flow_expression *e)
{
	for (unsigned i = 0; i < place->count; i++)
		if (same(&place->expression[i], e))
			return false;
	if (place->count == FLOW_EXPRESSIONS)
		place->bad = true; /* a loop that counts */
	else
		place->expression[place->count++] = *e;
	return true;
}

/* What is known behind an instruction is known before it, as it was then. */
static bool take_over(const struct flow *flow, uint32_t node, const struct flow_place *from,
		      struct flow_place *to)
{
	bool changed = false;

	to->bad |= from->bad || (from->count && flow->node[node].acquires);
	for (unsigned i = 0; i < from->count && !to->bad; i++) {
		struct flow_expression e = from->expression[i];

		if (flow->step(flow->context, node, &e))
			changed |= add(to, &e);
		else
			to->bad = true;
	}
	return changed;
}

static bool improve(const struct flow *flow, uint32_t node, struct flow_place *place)
{
	struct flow_place *here = &place[node];
	bool changed = false, any = false;

	if (here->bad)
		return false;
	here->bad = flow->node[node].unknown;
	for (uint32_t i = 0; i < followers(flow, node) && !here->bad; i++) {
		uint32_t next = follower(flow, node, i);

		if (next == FLOW_NOWHERE)
			continue;
		any = true;
		changed |= take_over(flow, node, &place[next], here);
	}
	here->bad |= !any; /* an exit */
	return changed || here->bad;
}

static void settle(const struct flow *flow, uint32_t access, struct flow_place *place)
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (uint32_t i = flow->nodes; i-- > 0;)
			if (i != access)
				changed |= improve(flow, i, place);
	}
}

static void note_start(uint32_t node, const struct flow_place *place, struct flow_start *start,
		       uint32_t *count, uint32_t most)
{
	for (uint32_t i = 0; i < *count && i < most; i++)
		if (start[i].node == node)
			return;
	if (*count < most)
		start[*count] = (struct flow_start){ node, place->expression[0] };
	++*count;
}

uint32_t flow_find(const struct flow *flow, uint32_t access, const struct flow_expression *e,
		   struct flow_place *place, struct flow_start *start, uint32_t most)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < flow->nodes; i++)
		place[i] = (struct flow_place){ .count = 0 };
	add(&place[access], e);
	settle(flow, access, place);
	/* A start is where one comes to from a place that is not good, or into the function. */
	if (flow_is_good(&place[0]))
		note_start(0, &place[0], start, &count, most);
	for (uint32_t i = 0; i < flow->nodes; i++) {
		if (flow_is_good(&place[i]) && i != access)
			continue; /* those behind it are in the same region */
		for (uint32_t k = 0; k < followers(flow, i); k++) {
			uint32_t next = follower(flow, i, k);

			if (next != FLOW_NOWHERE && flow_is_good(&place[next]))
				note_start(next, &place[next], start, &count, most);
		}
	}
	if (count == 0 || count > most) {
		start[0] = (struct flow_start){ access, *e };
		return 1;
	}
	return count;
}
