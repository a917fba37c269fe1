/* SPDX-License-Identifier: BSD-3-Clause */
/* Something happens only behind four magic bytes. */
#define BYTES 6
#define ALPHABET "PMv1xy"
#include "explore.h"

static void run(uint64_t *pm, const uint8_t *in)
{
	static const char magic[] = "PMv1";

	for (int i = 0; i < 4; i++)
		if (B(in[i] != magic[i]))
			return;
	if (B(in[4] == 'x')) {
		pm[0] = in[5]; /* finds: missing-flush */
	} else {
		pm[0] = 1;
		PERSIST(pm);
	}
}
