/* SPDX-License-Identifier: BSD-3-Clause */
/* Nothing was ever stored to one of the lines. */
#include "../pm.h"

int main(int argc, char **argv)
{
	char *p = pm_map(argv);

	memset(p, argc, 128);
	for (int i = 0; i < WHEN_BUGGY(192) WHEN_FIXED(128); i += 64)
		CLWB(p + i); /* expect: redundant-flush */
	SFENCE();
	return 0;
}
