/* merged: loads of two lines are made at one */
/* command: check */
/* flags: -lpmemobj */
/* no-pm: libpmemobj maps the pool */
/* model-limit: a prebuilt library writes to PM */
/* model-limit: recoveries depend on more than what they read */
/*
 * xfdetector.txt, Figure 14a: a map is allocated, and then filled in, without protection. A crash in
 * between leaves a map whose seed may not be persistent, and whose count was never set.
 */
#include "open_pool.h"

struct map {
	uint32_t seed, hash;
	char rest[56];
	uint64_t count;
};

struct root {
	PMEMoid map;
};

WHEN_FIXED(static int construct(PMEMobjpool *pool, void *p, void *unused)
{
	struct map *map = p;

	(void)unused;
	map->seed = 7;
	map->hash = 9;
	map->count = 0;
	pmemobj_persist(pool, map, sizeof(*map));
	return 0;
})

static void create(PMEMobjpool *pool, struct root *root)
{
	WHEN_FIXED(pmemobj_alloc(pool, &root->map, sizeof(struct map), 1, construct, NULL);)
#ifndef FIXED
	struct map *map;

	pmemobj_alloc(pool, &root->map, sizeof(struct map), 1, NULL, NULL);
	map = pmemobj_direct(root->map);
	map->seed = 7;
	map->hash = 9;
	pmemobj_persist(pool, map, 8);
#endif
}

int main(int argc, char **argv)
{
	PMEMobjpool *pool = open_pool(argv[1]);
	struct root *root = pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
	int status = 0;

	(void)argc;
	if (root->map.off) {
		struct map *map = pmemobj_direct(root->map);

		if (map->seed == 1234 || /* expect: cross-failure-race */
		    map->count == 1234) /* expect: cross-failure-race */
			status = 1;
	} else {
		create(pool, root);
	}
	pmemobj_close(pool);
	return status;
}
