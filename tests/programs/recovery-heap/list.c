/* command: check */
/* options: --pm-heap */
/* no-pm: the heap is */
/* variants: 4 */
/* A list whose nodes come from malloc; its head is a root slot. */
#include "../pm.h"

#include <perdure/perdure.h>

struct node {
	uint64_t key;
	struct node *next;
	char rest[48];
	uint64_t unset;
};

static void push(uint64_t key)
{
	struct node *node = aligned_alloc(64, 128);

	node->key = key;
	node->next = perdure_root_get(0);
#if BUG != 4
	node->unset = 0;
	CLWB(&node->unset);
#endif
#if BUG == 1
	perdure_root_set(0, node);
	PERSIST(node);
#elif BUG == 2
	CLWB(node);
	perdure_root_set(0, node);
	SFENCE();
#else
	PERSIST(node);
	perdure_root_set(0, node);
#endif
#if BUG == 3
	node->key += 100;
	PERSIST(node);
#endif
}

int main(int argc, char **argv)
{
	uint64_t sum = 0;

	(void)argc;
	(void)argv;
	for (struct node *node = perdure_root_get(0); node; node = node->next) /* expect-1: cross-failure-race */ /* expect-2: cross-failure-race */
		sum += node->key + node->unset; /* expect-1: cross-failure-race */ /* expect-2: cross-failure-race */ /* expect-3: cross-failure-race */ /* expect-4: cross-failure-race */
	if (sum > 10000)
		abort();
	for (int i = 1; i < 4; i++)
		push(i);
	free(malloc(100));
	return 0;
}
