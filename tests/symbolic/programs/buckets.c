/* SPDX-License-Identifier: BSD-3-Clause */
/* A hash table whose bucket is chosen by a symbolic key: each address is a path of its own. */
#define BYTES 2
#include "explore.h"

static void run(uint64_t *pm, const uint8_t *in)
{
	unsigned first = (in[0] * 5u + 1) & 3, second = (in[1] ^ 2u) & 3;

	pm[A(first) * 8] = 1;
	PERSIST(pm + first * 8);
	if (B(first == second)) {
		PERSIST(pm + first * 8); /* finds: redundant-flush */
		return;
	}
	pm[32] = second;
	PERSIST(pm + 32);
}
