/* SPDX-License-Identifier: BSD-3-Clause */
/* libpmem: mapping without --pm, persist, flush, drain and the copy functions. */
/* flags: -lpmem */
/* no-pm: yes */
#include "../pm.h"

#include <libpmem.h>

int main(int argc, char **argv)
{
	size_t size;
	int is_pmem;
	char *p = pmem_map_file(argv[1], PM_SIZE, PMEM_FILE_CREATE, 0600, &size, &is_pmem);

	if (!p || !is_pmem || !pmem_is_pmem(p, size))
		return 9;
	p[0] = argc;
	pmem_persist(p, 1);
	p[64] = argc;
	pmem_flush(p + 64, 1);
	pmem_drain();
	pmem_memcpy_persist(p + 128, "hello", 6);
	pmem_memset_persist(p + 256, 1, 300);
	pmem_memmove_nodrain(p + 1024, p, 100);
	pmem_memcpy(p + 2048, "hello", 6, PMEM_F_MEM_NODRAIN);
	pmem_drain();
	p[3000] = argc;
	pmem_msync(p + 3000, 1);
	WHEN_BUGGY(pmem_persist(p, 1)); /* expect: redundant-flush */
	p[4096] = argc; /* expect: missing-flush */
	WHEN_FIXED(pmem_persist(p + 4096, 1));
	p[5000] = argc; /* model-only: missing-fence */
	pmem_flush(p + 5000, 1);
	WHEN_FIXED(pmem_drain());
	pmem_memcpy(p + 6000, "hello", 6, PMEM_F_MEM_NOFLUSH); /* expect: missing-flush */
	WHEN_FIXED(pmem_persist(p + 6000, 6));
	if (p[128] != 'h' || p[555] != 1 || p[2048] != 'h')
		return 8;
	pmem_unmap(p, size);
	return 0;
}
