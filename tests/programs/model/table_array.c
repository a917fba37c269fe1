/* command: model */
/*
 * A hash table's head is flushed before it is published, but not the array of buckets behind it: recovery
 * follows what happens to be there.
 */
#include "../pm.h"

enum { BUCKETS = 16 };

struct table {
	_Alignas(64) uint64_t size;
	_Alignas(64) uint64_t bucket[BUCKETS]; /* index + 1 of the next free one: a list */
};

struct pm {
	_Alignas(64) struct table *volatile table;
	struct table first;
};

int main(int argc, char **argv)
{
	struct pm *pm = pm_map(argv);
	struct table *table = &pm->first;

	(void)argc;
	if (pm->table) {
		uint64_t free = 0;

		for (uint64_t i = 0; i < pm->table->size; i++)
			free += pm->table->bucket[i] == i + 1; /* expect: cross-failure-race */
		if (free != pm->table->size)
			abort(); /* expect: crash-symptom */
		return 0;
	}
	table->size = BUCKETS;
	for (uint64_t i = 0; i < BUCKETS; i++)
		table->bucket[i] = i + 1; /* expect: missing-flush */
	CLWB(&table->size);
	WHEN_FIXED(for (uint64_t i = 0; i < BUCKETS; i += 8) CLWB(&table->bucket[i]);)
	SFENCE();
	pm->table = table;
	PERSIST((void *)&pm->table);
	return 0;
}
