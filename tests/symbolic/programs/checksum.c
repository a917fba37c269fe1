/* SPDX-License-Identifier: BSD-3-Clause */
/* A packet counts only if its checksum is right. */
#define BYTES 3
#include "explore.h"

static void run(uint64_t *pm, const uint8_t *in)
{
	uint8_t sum = 0x5a;

	for (int i = 0; i < 2; i++)
		sum = (uint8_t)((sum << 1 | sum >> 7) + in[i]);
	if (B(sum != in[2]))
		return;
	if (B(in[0] > 200)) {
		pm[8] = in[1]; /* finds: missing-flush */
		return;
	}
	pm[8] = in[0];
	PERSIST(pm + 8);
	PERSIST(pm + 8); /* finds: redundant-flush */
}
