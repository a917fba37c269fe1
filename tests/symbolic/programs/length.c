/* SPDX-License-Identifier: BSD-3-Clause */
/* A length, and so many bytes; the last line of the longest ones is not written back. */
#define BYTES 2
#include "explore.h"

static void run(uint64_t *pm, const uint8_t *in)
{
	uint8_t *to = (uint8_t *)pm;
	unsigned length = in[0];

	if (B(length > 20))
		return;
	if (B(in[1] & 1))
		length *= 4;
	for (unsigned i = 0; B(i < length); i++)
		to[i] = 'a'; /* finds: missing-flush */
	if (B(length == 0))
		return;
	CLWB(to);
	SFENCE();
}
