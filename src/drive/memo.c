/* SPDX-License-Identifier: BSD-3-Clause */
#include "drive/memo.h"

#include <stdlib.h>
#include <string.h>

struct node {
	struct read_record read; /* of the first execution that came here, with its value */
	uint32_t to;             /* where this value leads to: most nodes have only one */
	uint32_t outcome;        /* index + 1: the end */
};

/* The other values. */
struct edge {
	uint64_t value;
	uint32_t from, to; /* to is 0 in an empty slot */
};

struct memo {
	struct node *node; /* node 0 is never used, 1 is the root */
	uint32_t nodes, nodes_room, nodes_most;
	struct edge *edge; /* hash table */
	uint32_t edges, edges_mask;
	struct outcome **outcome; /* others point to them: they stay where they are */
	uint32_t outcomes, outcomes_room;
};

static void *grow(void *list, uint32_t used, uint32_t *room, size_t size)
{
	if (used < *room)
		return list;
	*room = *room ? *room * 2 : 1024;
	list = realloc(list, *room * size);
	if (!list)
		abort();
	return list;
}

struct memo *memo_new(uint32_t most)
{
	struct memo *memo = calloc(1, sizeof(*memo));

	if (!memo)
		abort();
	memo->edges_mask = 4095;
	memo->edge = calloc(memo->edges_mask + 1ul, sizeof(*memo->edge));
	if (!memo->edge)
		abort();
	memo->nodes = 1;
	memo->nodes_most = most;
	return memo;
}

void memo_free(struct memo *memo)
{
	for (uint32_t i = 0; i < memo->outcomes; i++) {
		free(memo->outcome[i]->output);
		free(memo->outcome[i]);
	}
	free(memo->outcome);
	free(memo->node);
	free(memo->edge);
	free(memo);
}

uint32_t memo_root(const struct memo *memo)
{
	return memo->nodes > 1;
}

const struct read_record *memo_read(const struct memo *memo, uint32_t node)
{
	return memo->node[node].outcome ? NULL : &memo->node[node].read;
}

const struct outcome *memo_outcome(const struct memo *memo, uint32_t node)
{
	return memo->outcome[memo->node[node].outcome - 1];
}

static struct edge *find(const struct memo *memo, uint32_t from, uint64_t value)
{
	uint32_t at = (value ^ from * 0x9e3779b97f4a7c15ull) * 0xbf58476d1ce4e5b9ull >> 32;

	for (;; at++) {
		struct edge *edge = &memo->edge[at & memo->edges_mask];

		if (!edge->to || (edge->from == from && edge->value == value))
			return edge;
	}
}

uint32_t memo_next(const struct memo *memo, uint32_t node, uint64_t value)
{
	if (memo->node[node].to && memo->node[node].read.value == value)
		return memo->node[node].to;
	return find(memo, node, value)->to;
}

static void set_edge(struct memo *memo, uint32_t from, uint64_t value, uint32_t to)
{
	if (!memo->node[from].to) {
		memo->node[from].read.value = value;
		memo->node[from].to = to;
		return;
	}
	if (memo->edges * 2 > memo->edges_mask) {
		struct edge *old = memo->edge;
		uint32_t count = memo->edges_mask + 1;

		memo->edges_mask = count * 2 - 1;
		memo->edge = calloc(count * 2ul, sizeof(*old));
		if (!memo->edge)
			abort();
		for (uint32_t i = 0; i < count; i++)
			if (old[i].to)
				*find(memo, old[i].from, old[i].value) = old[i];
		free(old);
	}
	*find(memo, from, value) = (struct edge){ value, from, to };
	memo->edges++;
}

static uint32_t add_node(struct memo *memo, const struct read_record *read, uint32_t outcome)
{
	memo->node = grow(memo->node, memo->nodes, &memo->nodes_room, sizeof(*memo->node));
	memo->node[memo->nodes] = (struct node){ .outcome = outcome };
	if (read)
		memo->node[memo->nodes].read = *read;
	return memo->nodes++;
}

static uint32_t add_outcome(struct memo *memo, const struct outcome *outcome)
{
	struct outcome *copy = malloc(sizeof(*copy));

	if (!copy)
		abort();
	*copy = *outcome;
	if (outcome->output)
		copy->output = strdup(outcome->output);
	memo->outcome =
		grow(memo->outcome, memo->outcomes, &memo->outcomes_room, sizeof(*memo->outcome));
	memo->outcome[memo->outcomes] = copy;
	return ++memo->outcomes;
}

static bool same_read(const struct node *node, const struct read_record *read)
{
	return !node->outcome && node->read.line == read->line && node->read.bytes == read->bytes;
}

static bool same_outcome(const struct memo *memo, const struct node *node,
			 const struct outcome *outcome)
{
	const struct outcome *known = node->outcome ? memo->outcome[node->outcome - 1] : NULL;

	return known && known->symptom == outcome->symptom && known->status == outcome->status;
}

bool memo_add(struct memo *memo, const struct read_record *read, uint32_t reads,
	      const struct outcome *outcome)
{
	uint32_t node = memo_root(memo), previous = 0;
	bool known = false;

	for (uint32_t i = 0; i <= reads; i++) {
		const struct read_record *next = i < reads ? &read[i] : NULL;

		if (!node && (!previous || known) && memo->nodes + (reads - i) >= memo->nodes_most)
			return true;
		known = node != 0;
		if (!node) {
			node = add_node(memo, next, next ? 0 : add_outcome(memo, outcome));
			if (previous)
				set_edge(memo, previous, read[i - 1].value, node);
		} else if (next ? !same_read(&memo->node[node], next)
				: !same_outcome(memo, &memo->node[node], outcome)) {
			return false;
		}
		previous = node;
		node = next ? memo_next(memo, node, next->value) : 0;
	}
	return true;
}
