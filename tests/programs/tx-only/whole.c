/* SPDX-License-Identifier: BSD-3-Clause */
/* perdure-cc: only a compiler knows what is in which structure */
/* Copies to a whole structure, through a parameter; and one that only has the name of a typedef. */
/* flags: -lpmemobj */
/* no-pm: yes */
/* options: --tx-only node --tx-only record --disable redundant-flush */
#include "../pool.h"

typedef struct {
	long a, b;
} record;

__attribute__((noinline)) static void assign(struct node *to, const struct node *from)
{
	*to = *from; /* expect: store-outside-tx */
}

__attribute__((noinline)) static void clear(struct node *node)
{
	memset(node, 0, sizeof(*node)); /* expect: store-outside-tx */
}

__attribute__((noinline)) static void set(record *to, const record *from)
{
	*to = *from; /* expect: store-outside-tx */
}

int main(int argc, char **argv)
{
	PMEMobjpool *pool = pool_create(argv[1]);
	struct root *root = pool_root(pool);
	struct node node = { .key = argc };
	record pair = { argc, argc };

#ifdef FIXED
	TX_BEGIN(pool) {
		TX_ADD_DIRECT(root);
		assign(&root->inline_node, &node);
		clear(&root->inline_node);
		set((record *)root->padding, &pair);
	} TX_END
#else
	assign(&root->inline_node, &node);
	clear(&root->inline_node);
	set((record *)root->padding, &pair);
	pmemobj_persist(pool, root, sizeof(*root));
#endif
	pmemobj_close(pool);
	return 0;
}
