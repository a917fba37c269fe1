/* SPDX-License-Identifier: BSD-3-Clause */
/* A copy over several lines of which one is forgotten: one finding. */
#include "../pm.h"

int main(int argc, char **argv)
{
	char *p = pm_map(argv);
	char text[300];

	memset(text, argc, sizeof(text));
	memcpy(p + 8, text, sizeof(text)); /* expect: missing-flush */
	for (int line = WHEN_BUGGY(1) WHEN_FIXED(0); line < 5; line++)
		CLWB(p + line * 64);
	SFENCE();
	return 0;
}
