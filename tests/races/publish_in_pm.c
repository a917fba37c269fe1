/* SPDX-License-Identifier: BSD-3-Clause */
/* The same with the pointer in PM: the node is good, but the pointer itself may be lost. */
#include "races.h"

enum { NODES = 256 };

struct root {
	_Alignas(64) struct node {
		_Alignas(64) long value;
	} *volatile head;
	struct node node[NODES];
};
static struct root *root;

static void *writer(void *unused)
{
	for (long i = 0; i < ROUNDS; i++) {
		struct node *n = &root->node[i % NODES];

		n->value = i;
		PERSIST(n);
		WHEN_BUGGY(root->head = n); /* store: head */
		PERSIST(&root->head);
	}
	return unused;
}

static void *reader(void *unused)
{
	for (long i = 0; i < ROUNDS; i++) {
		struct node *n = root->head; /* load: head */

		if (n)
			sink += (long)n;
	}
	return unused;
}

int main(int argc, char **argv)
{
	root = pm_map(argv);
	run_both(writer, reader);
	return argc != 2;
}
