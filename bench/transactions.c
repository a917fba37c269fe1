/* SPDX-License-Identifier: BSD-3-Clause */
/* Inserts into a hash table on libpmemobj: a transaction, an allocation, two logged ranges each. */
#include <libpmemobj.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BUCKETS = 1 << 14, INSERTS = 200000 };

struct node {
	uint64_t key, value[4];
	PMEMoid next;
};

struct table {
	uint64_t count;
	PMEMoid bucket[BUCKETS];
};

static void insert(PMEMobjpool *pool, struct table *table, uint64_t key)
{
	PMEMoid *bucket = &table->bucket[key * 0x9e3779b97f4a7c15ull >> 50];

	TX_BEGIN(pool)
	{
		PMEMoid oid = pmemobj_tx_alloc(sizeof(struct node), 1);
		struct node *node = pmemobj_direct(oid);

		node->key = key;
		for (int i = 0; i < 4; i++)
			node->value[i] = key + i;
		node->next = *bucket;
		pmemobj_tx_add_range_direct(bucket, sizeof(*bucket));
		*bucket = oid;
		pmemobj_tx_add_range_direct(&table->count, sizeof(table->count));
		table->count++;
	}
	TX_END
}

int main(int argc, char **argv)
{
	PMEMobjpool *pool = argc > 2 ? pmemobj_create(argv[2], "", 256ul << 20, 0600) : NULL;
	struct timespec start, end;
	struct table *table;

	if (!pool)
		return 2;
	table = pmemobj_direct(pmemobj_root(pool, sizeof(*table)));
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (uint64_t key = 1; key <= INSERTS; key++)
		insert(pool, table, key);
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%.6f seconds, %lu bytes\n",
	       end.tv_sec - start.tv_sec + (end.tv_nsec - start.tv_nsec) / 1e9, 256ul << 20);
	pmemobj_close(pool);
	return 0;
}
