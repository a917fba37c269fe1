/* command: model */
/* A table is replaced by a larger one, but the table is flushed where the pointer to it should be. */
#include "../pm.h"

struct table {
	_Alignas(64) uint64_t size;
	uint64_t key[7];
};

struct pm {
	_Alignas(64) struct table *volatile current;
	_Alignas(64) volatile uint64_t resized; /* the old one may be used for something else */
	_Alignas(64) struct table table[2];
};

static void fill(struct table *table, uint64_t size)
{
	for (uint64_t i = 0; i < size; i++)
		table->key[i] = i + 1;
	table->size = size;
	PERSIST(table);
}

static void resize(struct pm *pm)
{
	fill(&pm->table[1], 7);
	pm->current = &pm->table[1];
	WHEN_FIXED(PERSIST((void *)&pm->current);)
	WHEN_BUGGY(PERSIST(pm->current);) /* expect: redundant-flush */
	pm->resized = 1;
	PERSIST((void *)&pm->resized);
	memset(&pm->table[0], 0xff, sizeof(pm->table[0]));
	PERSIST(&pm->table[0]);
	WHEN_BUGGY(PERSIST((void *)&pm->current);)
}

int main(int argc, char **argv)
{
	struct pm *pm = pm_map(argv);

	(void)argc;
	if (!pm->current) {
		fill(&pm->table[0], 3);
		pm->current = &pm->table[0];
		PERSIST((void *)&pm->current);
		resize(pm);
		return 0;
	}
	if (!pm->resized)
		return 0;
	for (uint64_t i = 0; i < pm->current->size; i++) /* expect: cross-failure-race */
		if (pm->current->key[i] != i + 1) /* expect: cross-failure-race */
			abort(); /* expect: crash-symptom */
	return 0;
}
