/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Without any lock: a node is persisted, and then a pointer to it is published in ordinary memory.
 * That is how it should be done, and nothing is to be said about it.
 */
#include <stdatomic.h>

#include "races.h"

enum { NODES = 256 };

struct node {
	_Alignas(64) long value;
	long between[3];
	long copy;
};
static struct node *node;
static struct node *_Atomic published;

static void *writer(void *unused)
{
	for (long i = 0; i < ROUNDS; i++) {
		struct node *n = &node[i % NODES];

		n->value = i; /* store: value */
		n->copy = i;  /* store: copy */
		WHEN_FIXED(PERSIST(n));
		atomic_store_explicit(&published, n, memory_order_release);
		WHEN_BUGGY(PERSIST(n));
		while (atomic_load_explicit(&published, memory_order_acquire))
			; /* the reader is done with it */
	}
	return unused;
}

static void *reader(void *unused)
{
	for (long i = 0; i < ROUNDS; i++) {
		struct node *n;

		while (!(n = atomic_load_explicit(&published, memory_order_acquire)))
			;
		sink = n->value; /* load: value */
		sink = n->copy;  /* load: copy */
		atomic_store_explicit(&published, NULL, memory_order_release);
	}
	return unused;
}

int main(int argc, char **argv)
{
	node = pm_map(argv);
	run_both(writer, reader);
	return argc != 2;
}
