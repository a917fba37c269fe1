/* SPDX-License-Identifier: BSD-3-Clause */
/* Most of it has nothing to do with PM; what has, is behind one of many doors. */
#define BYTES 6
#define ALPHABET "abz"
#include "explore.h"

static unsigned volatile scratch;

static void wander(const uint8_t *in, int n)
{
	for (int i = 0; i < n; i++)
		if (B(in[i] == 'a'))
			scratch += 1;
		else if (B(in[i] == 'b'))
			scratch ^= 3;
}

static void run(uint64_t *pm, const uint8_t *in)
{
	if (B(in[0] == 'a')) {
		wander(in + 1, 5);
		return;
	}
	if (B(in[0] == 'b')) {
		wander(in + 1, 5);
		return;
	}
	if (B(in[5] == 'a'))
		pm[0] = scratch; /* finds: missing-flush */
	wander(in + 1, 4);
}
