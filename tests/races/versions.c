/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nodes with optimistic locks, which count how often they were given back: their words are no data,
 * though they are in PM and never persisted. Counters beside them are.
 */
#include <stdatomic.h>

#include "races.h"

enum { NODES = 4 };

struct node {
	_Alignas(64) atomic_long version; /* odd: somebody has the lock */
	_Alignas(64) atomic_long count;
	long value;
	_Alignas(64) atomic_long rounds;
};
static struct node *node;

static void take(struct node *n)
{
	long version = atomic_load(&n->version);

	while (version & 1 || !atomic_compare_exchange_weak(&n->version, &version, version + 1))
		version = atomic_load(&n->version);
}

static void give_back(struct node *n)
{
	atomic_fetch_add(&n->version, 1);
}

static void count_round(void)
{
#ifndef FIXED
	atomic_fetch_add(&node->rounds, 1); /* store: rounds */ /* load: rounds */
#endif
}

static void *writer(void *unused)
{
	for (long i = 1; i < ROUNDS; i++) {
		struct node *n = &node[i % NODES];

		count_round();
		take(n);
		n->value = i;                   /* store: value */
		atomic_fetch_add(&n->count, 1); /* store: count */
		WHEN_FIXED(PERSIST(&n->count));
		give_back(n);
		PERSIST(&n->count);
	}
	return unused;
}

static void *reader(void *unused)
{
	for (long i = 1; i < ROUNDS; i++) {
		struct node *n = &node[i % NODES];

		count_round();
		take(n);
		sink = n->value;               /* load: value */
		sink = atomic_load(&n->count); /* load: count */
		give_back(n);
	}
	return unused;
}

int main(int argc, char **argv)
{
	node = pm_map(argv);
	run_both(writer, reader);
	return argc != 2;
}
