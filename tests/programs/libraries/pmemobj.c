/* SPDX-License-Identifier: BSD-3-Clause */
/* libpmemobj without transactions: copies, flags, allocation with a constructor, lists. */
/* flags: -lpmemobj */
/* no-pm: yes */
#include "../pool.h"

TOID_DECLARE(struct item, 5);
struct item {
	POBJ_LIST_ENTRY(struct item) list;
	uint64_t value;
};
POBJ_LIST_HEAD(items, struct item);

struct list {
	struct items head;
	uint64_t length;
};

static int make_node(PMEMobjpool *pool, void *memory, void *argument)
{
	struct node *node = memory;

	node->key = *(int *)argument; /* expect: missing-flush */
	WHEN_FIXED(pmemobj_persist(pool, &node->key, sizeof(node->key)));
	(void)pool;
	return 0;
}

static int make_item(PMEMobjpool *pool, void *memory, void *argument)
{
	struct item *item = memory;

	item->value = *(int *)argument;
	pmemobj_persist(pool, &item->value, sizeof(item->value));
	return 0;
}

static void lists(PMEMobjpool *pool, int argument)
{
	PMEMoid oid;
	struct list *list;
	TOID(struct item) first;

	pmemobj_zalloc(pool, &oid, sizeof(struct list), 6);
	list = pmemobj_direct(oid);
	for (int i = 0; i < 3; i++)
		POBJ_LIST_INSERT_NEW_HEAD(pool, &list->head, list, sizeof(struct item), make_item, &argument);
	first = POBJ_LIST_FIRST(&list->head);
	POBJ_LIST_REMOVE_FREE(pool, &list->head, first, list);
	list->length = 2; /* expect: missing-flush */
	WHEN_FIXED(pmemobj_persist(pool, &list->length, sizeof(list->length)));
}

int main(int argc, char **argv)
{
	PMEMobjpool *pool = pool_create(argv[1]);
	struct root *root = pool_root(pool);
	struct node *node = &root->inline_node;

	root->first = OID_NULL; /* the allocation stores here, durably */
	pmemobj_alloc(pool, &root->first, sizeof(struct node), 1, make_node, &argc);
	pmemobj_memcpy_persist(pool, &root->count, &(uint64_t){ argc }, 8);
	pmemobj_memcpy(pool, &root->total, &(uint64_t){ argc }, 8, PMEMOBJ_F_MEM_NOFLUSH); /* expect: missing-flush */
	WHEN_FIXED(pmemobj_persist(pool, &root->total, 8));
	pmemobj_flush(pool, &node->key, 8); /* always: redundant-flush */
	lists(pool, argc);
	pmemobj_memset(pool, node->name + 32, 0, 16, PMEMOBJ_F_MEM_NODRAIN); /* model-only: missing-fence */
	WHEN_FIXED(pmemobj_drain(pool));
	pmemobj_close(pool);
	return 0;
}
