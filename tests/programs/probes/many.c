/* SPDX-License-Identifier: BSD-3-Clause */
/* Far more than ten thousand lost stores and useless flushes: it does not give up. */
#include "../pm.h"

int main(int argc, char **argv)
{
	char *p = pm_map(argv);

	for (int round = 0; round < 50; round++)
		for (int i = 0; i < PM_SIZE; i += 64)
			WHEN_BUGGY(CLWB(p + i)); /* expect: redundant-flush */
	for (int i = 0; i < PM_SIZE; i += 64)
		p[i] = argc; /* expect: missing-flush */
	p[1] = argc; /* expect: missing-flush */
	WHEN_FIXED(for (int i = 0; i < PM_SIZE; i += 64) CLFLUSH(p + i));
	return 0;
}
