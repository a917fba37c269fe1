/* SPDX-License-Identifier: BSD-3-Clause */
/* clflush is ordered by itself; clflushopt is not. lfence orders no flush. */
#include "../pm.h"

int main(int argc, char **argv)
{
	long *p = pm_map(argv);

	(void)argc;
	p[0] = 1;
	CLFLUSH(p);
	p[8] = 1; /* expect: missing-fence */
	CLFLUSHOPT(p + 8);
	WHEN_FIXED(SFENCE());
	__asm__ volatile("lfence" ::: "memory");
	return 0;
}
