/* SPDX-License-Identifier: BSD-3-Clause */
/* After the paper's Listing 2: the pointer is set to null, and nothing more. */
#define BYTES 2
#include "explore.h"

static void run(uint64_t *pm, const uint8_t *in)
{
	uint64_t *object = pm + 8;

	*object = in[0];
	PERSIST(object);
	if (B(in[1] != 0))
		*object = 0; /* finds: missing-flush */
}
