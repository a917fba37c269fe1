/* SPDX-License-Identifier: BSD-3-Clause */
/* After the paper's Listing 3: an array that shrinks is written back though nothing has changed. */
#define BYTES 2
#define ALPHABET "\0\1\2\3\4\5\6\7\10"
#include "explore.h"

static void run(uint64_t *pm, const uint8_t *in)
{
	unsigned size = in[0], new_size = in[1];

	if (B(size > 4))
		return;
	if (B(new_size > 4))
		return;
	for (unsigned i = size; B(i < new_size); i++)
		pm[A(i) * 8] = 1;
	for (unsigned i = 0; B(i < (uint8_t)(new_size - size)); i++) {
		if (i == 6) /* there are not more lines */
			break;
		CLWB(pm + A(i + size) * 8); /* finds: redundant-flush */
	}
	SFENCE();
}
