/* SPDX-License-Identifier: BSD-3-Clause */
/* Where regions may start: the paper's Figure 5, and random functions against all their ways. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "binary/flow.h"

enum { NODES = 14, REGISTERS = 3, STARTS = 8, GRAPHS = 20000, VISITS = 5, STEPS = 20000 };

/* What an instruction does to registers. */
enum deed { NOTHING, CHANGES, COPIES, ADDS };

struct toy {
	struct flow_node node[NODES];
	struct {
		enum deed deed;
		uint8_t to, from;
	} does[NODES];
	uint32_t more[NODES];
	struct flow flow;
};

static bool step(void *context, uint32_t node, struct flow_expression *e)
{
	const struct toy *toy = context;

	if (toy->does[node].deed == NOTHING || toy->does[node].to != e->base)
		return true;
	if (toy->does[node].deed == CHANGES)
		return false;
	if (toy->does[node].deed == COPIES)
		e->base = toy->does[node].from;
	else
		e->displacement += 8;
	return true;
}

static void set_up(struct toy *toy, uint32_t nodes)
{
	for (uint32_t i = 0; i < nodes; i++)
		toy->node[i].next[0] = toy->node[i].next[1] = FLOW_NOWHERE;
	toy->flow = (struct flow){ toy->node, nodes, toy->more, step, toy };
}

static struct flow_expression in_register(uint8_t number)
{
	return (struct flow_expression){ .base = number, .index = FLOW_NONE, .scale = 1 };
}

/* ---- Figure 5 ---- */

enum { W, X, Y, Z };

static void figure5_graph(struct toy *toy)
{
	/* b0: 0; b1: 1 load [w]; b2: 2 modify w, back or on; b3: 3, 4 load [x], 5 acquire; b4: 6
	 * store [y], and on to 8, or b5: 7 store [z]; 8: the end. */
	static const uint32_t next[][2] = {
		{ 1, FLOW_NOWHERE }, { 2, FLOW_NOWHERE }, { 1, 3 }, { 4, FLOW_NOWHERE },
		{ 5, FLOW_NOWHERE }, { 6, FLOW_NOWHERE }, { 7, 8 }, { 8, FLOW_NOWHERE },
	};

	set_up(toy, 9);
	for (unsigned i = 0; i < sizeof(next) / sizeof(*next); i++)
		memcpy(toy->node[i].next, next[i], sizeof(next[i]));
	toy->does[2].deed = CHANGES;
	toy->does[2].to = W;
	toy->node[5].acquires = true;
}

static void starts_as_in_figure_5(void **state)
{
	static const struct {
		uint8_t variable;
		uint32_t access, start;
	} wanted[] = { { W, 1, 1 }, { X, 4, 0 }, { Y, 6, 6 }, { Z, 7, 7 } };
	struct flow_start start[STARTS];
	struct flow_place place[NODES];
	struct toy toy = { 0 };

	(void)state;
	figure5_graph(&toy);
	for (unsigned i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		struct flow_expression e = in_register(wanted[i].variable);
		bool found = false;
		uint32_t n = flow_find(&toy.flow, wanted[i].access, &e, place, start, STARTS);

		for (uint32_t k = 0; k < n; k++)
			found |= start[k].node == wanted[i].start;
		assert_true(found);
		/* W also starts in front of the loop, where its first value is known. */
		assert_int_equal(n, wanted[i].variable == W ? 2 : 1);
	}
}

/* ---- all ways ---- */

/* Every way from a node to the access, by its definition; loops are gone through a few times. */
struct walk {
	const struct toy *toy;
	uint32_t access;
	uint8_t target;
	uint32_t way[NODES * (VISITS + 1)];
	unsigned length, visits[NODES];
	unsigned steps;
	bool any, bad;
	struct flow_expression agreed;
};

static void arrive(struct walk *w)
{
	struct flow_expression e = in_register(w->target);

	for (unsigned i = w->length; i-- > 0;)
		if (w->toy->node[w->way[i]].acquires || !step((void *)w->toy, w->way[i], &e)) {
			w->bad = true;
			return;
		}
	if (w->any && memcmp(&e, &w->agreed, sizeof(e)) != 0)
		w->bad = true;
	w->any = true;
	w->agreed = e;
}

static void walk(struct walk *w, uint32_t node)
{
	const struct flow_node *n = &w->toy->node[node];
	bool leads = false;

	if (w->bad || ++w->steps > STEPS)
		return;
	if (node == w->access) {
		arrive(w);
		return;
	}
	if (n->unknown) {
		w->bad = true;
		return;
	}
	if (w->visits[node] == VISITS)
		return;
	w->visits[node]++;
	w->way[w->length++] = node;
	for (unsigned i = 0; i < 2; i++)
		if (n->next[i] != FLOW_NOWHERE) {
			leads = true;
			walk(w, n->next[i]);
		}
	w->bad |= !leads; /* out of the function, without the access */
	w->length--;
	w->visits[node]--;
}

/* Is it good by definition, and what is the address there? */
static bool is_good(const struct toy *toy, uint32_t from, uint32_t access, uint8_t target,
		    struct flow_expression *e, bool *certain)
{
	struct walk w = { .toy = toy, .access = access, .target = target };

	walk(&w, from);
	*e = w.agreed;
	*certain = w.bad || w.steps <= STEPS;
	return w.any && !w.bad;
}

static bool reaches(const struct toy *toy, uint32_t from, uint32_t to, bool *seen)
{
	bool found = from == to;

	if (seen[from])
		return false;
	seen[from] = true;
	for (unsigned i = 0; i < 2 && !found; i++)
		found = toy->node[from].next[i] != FLOW_NOWHERE &&
			reaches(toy, toy->node[from].next[i], to, seen);
	return found;
}

static void make_random(struct toy *toy)
{
	uint32_t nodes = 4 + rand() % (NODES - 4);

	set_up(toy, nodes);
	for (uint32_t i = 0; i < nodes; i++) {
		unsigned kind = rand() % 10;

		if (i + 1 < nodes)
			toy->node[i].next[0] = i + 1;
		if (rand() % 4 == 0)
			toy->node[i].next[1] = rand() % nodes;
		if (rand() % 8 == 0)
			toy->node[i].next[0] = rand() % nodes;
		toy->node[i].acquires = rand() % 12 == 0;
		toy->node[i].unknown = rand() % 40 == 0;
		toy->does[i].deed = kind == 0   ? CHANGES
				    : kind == 1 ? COPIES
				    : kind == 2 ? ADDS
						: NOTHING;
		toy->does[i].to = rand() % REGISTERS;
		toy->does[i].from = rand() % REGISTERS;
	}
}

static void agrees_with_the_definition(void **state)
{
	unsigned good = 0, early = 0;

	(void)state;
	srand(1);
	for (unsigned g = 0; g < GRAPHS; g++) {
		struct flow_place place[NODES];
		struct flow_start start[STARTS];
		struct toy toy = { 0 };
		uint32_t access, count;
		uint8_t target = rand() % REGISTERS;
		struct flow_expression e = in_register(target), wanted;

		make_random(&toy);
		access = rand() % toy.flow.nodes;
		count = flow_find(&toy.flow, access, &e, place, start, STARTS);
		for (uint32_t i = 0; i < toy.flow.nodes; i++) {
			bool seen[NODES] = { 0 }, wanted_good, certain;

			/* Of what can never come to the access nothing can be said. */
			if (i == access || !reaches(&toy, i, access, seen))
				continue;
			wanted_good = is_good(&toy, i, access, target, &wanted, &certain);
			if (!certain)
				continue;
			if (wanted_good) {
				good++;
				assert_true(flow_is_good(&place[i]));
				assert_memory_equal(&place[i].expression[0], &wanted,
						    sizeof(wanted));
			} else {
				assert_false(flow_is_good(&place[i]));
			}
		}
		/* Starts are good places, and nothing before them is. */
		for (uint32_t k = 0; k < count; k++) {
			assert_true(flow_is_good(&place[start[k].node]));
			early += start[k].node != access;
		}
	}
	assert_true(good > GRAPHS / 4 && early > GRAPHS / 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(starts_as_in_figure_5),
		cmocka_unit_test(agrees_with_the_definition),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
