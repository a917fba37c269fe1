/* SPDX-License-Identifier: BSD-3-Clause */
/* perdure-cc: other code is not asked about ordinary memory */
/* One fence an iteration where one in all would do, and the stores of a loop are seen. */
#include "../pm.h"

static long table[64];

int main(int argc, char **argv)
{
	char *p = pm_map(argv);

	memset(p, argc, 256);
	for (int i = 0; i < 256; i += 64)
		CLWB(p + i);
	SFENCE();
	for (int i = 0; i < 4; i++) {
		WHEN_BUGGY(SFENCE()); /* expect: redundant-fence */
	}
	for (int i = 0; i < 64; i++)
		table[i] = i * argc;
	SFENCE();
	return (int)table[0];
}
