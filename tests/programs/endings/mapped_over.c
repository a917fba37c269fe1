/* SPDX-License-Identifier: BSD-3-Clause */
/* Ordinary memory that is mapped over a part of PM is no PM; what was there before is judged. */
#include "../pm.h"

int main(int argc, char **argv)
{
	char *p = pm_map(argv);

	p[4096] = argc; /* expect: missing-flush */
	WHEN_FIXED(PERSIST(p + 4096));
	if (mmap(p + 4096, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != p + 4096)
		return 9;
	p[4097] = argc;
	p[0] = argc;
	PERSIST(p);
	return 0;
}
