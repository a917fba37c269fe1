/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands by a table of functions. */
#define BYTES 4
#define ALPHABET "\0\1\2\3\4"
#include "explore.h"

static unsigned volatile noise;

static void look(uint64_t *pm, uint8_t value)
{
	(void)pm;
	for (uint8_t i = 1; i < 4; i++)
		if (B(value == i))
			noise += i;
}

static void set(uint64_t *pm, uint8_t value)
{
	pm[24] = value; /* finds: missing-flush */
	if (B(value != 3))
		PERSIST(pm + 24);
}

static void run(uint64_t *pm, const uint8_t *in)
{
	static void (*const command[])(uint64_t *, uint8_t) = { look, look, set, look };

	for (int i = 0; i < 4; i += 2) {
		if (B(in[i] > 3))
			return;
#ifdef ENUMERATE /* each function is a way of its own */
		if (!B(command[in[i]] == look))
			set(pm, in[i + 1]);
		else
			look(pm, in[i + 1]);
#else
		command[in[i]](pm, in[i + 1]);
#endif
	}
}
