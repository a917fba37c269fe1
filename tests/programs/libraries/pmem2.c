/* SPDX-License-Identifier: BSD-3-Clause */
/* libpmem2 hands out functions for a map. */
/* flags: -lpmem2 */
/* no-pm: yes */
#include "../pm.h"

#include <libpmem2.h>

int main(int argc, char **argv)
{
	int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
	struct pmem2_config *config;
	struct pmem2_source *source;
	struct pmem2_map *map;
	pmem2_persist_fn persist;
	pmem2_memcpy_fn copy;
	char *p;

	if (ftruncate(fd, PM_SIZE) < 0 || pmem2_config_new(&config) ||
	    pmem2_source_from_fd(&source, fd) ||
	    pmem2_config_set_required_store_granularity(config, PMEM2_GRANULARITY_CACHE_LINE) ||
	    pmem2_map_new(&map, config, source))
		return 9;
	p = pmem2_map_get_address(map);
	persist = pmem2_get_persist_fn(map);
	copy = pmem2_get_memcpy_fn(map);
	p[0] = argc;
	persist(p, 1);
	copy(p + 64, "hello", 6, 0);
	p[128] = argc; /* expect: missing-flush */
	WHEN_FIXED(persist(p + 128, 1));
	copy(p + 192, "hello", 6, PMEM2_F_MEM_NODRAIN); /* model-only: missing-fence */
	WHEN_FIXED(pmem2_get_drain_fn(map)());
	pmem2_map_delete(&map);
	pmem2_source_delete(&source);
	pmem2_config_delete(&config);
	close(fd);
	return 0;
}
