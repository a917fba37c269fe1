/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers that a fuzzer does not guess. */
#define BYTES 2
#include "explore.h"

static void run(uint64_t *pm, const uint8_t *in)
{
	uint32_t x = in[0] | (uint32_t)in[1] << 8;

	if (B(x * 7 + 3 == 23999)) {
		pm[1] = x; /* finds: missing-flush */
		return;
	}
	if (B((x ^ 0x1234) % 1000 == 77)) {
		pm[2] = x; /* finds: missing-flush */
		return;
	}
	if (B((int16_t)x < -32000)) {
		pm[3] = x; /* finds: missing-fence */
		CLWB(pm + 3);
		return;
	}
	pm[4] = x;
	PERSIST(pm + 4);
}
