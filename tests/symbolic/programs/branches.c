/* SPDX-License-Identifier: BSD-3-Clause */
/* After the paper's Listing 7: a buffer that one way only reads, and the other way changes. */
#define BYTES 3
#define ALPHABET "\0\1\2ABC"
#include "explore.h"

static uint64_t think(const uint8_t *in)
{
	uint64_t result = 0;

	for (int i = 1; i < 3; i++) {
		if (B(in[i] == 'A'))
			result += 3;
		else if (B(in[i] == 'B'))
			result ^= 5;
		else if (B(in[i] == 'C'))
			result *= 7;
	}
	return result;
}

static void run(uint64_t *pm, const uint8_t *in)
{
	uint64_t a;

	if (B(in[0] == 1)) {
		a = pm[in[1] & 1];
		a += think(in);
	} else {
		a = in[2];
		pm[16] = a; /* finds: missing-fence */
		CLWB(pm + 16);
	}
	(void)a;
}
