/* command: model */
/*
 * An allocator marks a block as used, and counts it, in two lines: each is persistent at once, but not
 * both together, and its own consistency check fails after a crash. Fixed: a log entry, and a recovery
 * that counts again.
 */
#include "../pm.h"

#include <assert.h>

struct pm {
	_Alignas(64) volatile uint64_t used; /* one bit a block */
	_Alignas(64) volatile uint64_t count;
	_Alignas(64) volatile uint64_t at_work;
};

static uint64_t allocate(struct pm *pm)
{
	uint64_t block = __builtin_ctzll(~pm->used);

	WHEN_FIXED(pm->at_work = 1; PERSIST((void *)&pm->at_work);)
	pm->used |= 1ull << block;
	PERSIST((void *)&pm->used);
	pm->count = __builtin_popcountll(pm->used);
	PERSIST((void *)&pm->count);
	WHEN_FIXED(pm->at_work = 0; PERSIST((void *)&pm->at_work);)
	return block;
}

int main(int argc, char **argv)
{
	struct pm *pm = pm_map(argv);

	(void)argc;
	if (pm->at_work)
		pm->count = __builtin_popcountll(pm->used);
	assert(pm->count == (uint64_t)__builtin_popcountll(pm->used)); /* expect: crash-symptom */
	if (pm->used)
		return 0;
	for (int i = 0; i < 3; i++)
		allocate(pm);
	return 0;
}
