/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands of one letter and a digit. */
#define BYTES 4
#define ALPHABET "sdgq0159 "
#include "explore.h"

static int digit(uint8_t c)
{
	if (B(c < '0'))
		return -1;
	if (B(c > '9'))
		return -1;
	return c - '0';
}

static void run(uint64_t *pm, const uint8_t *in)
{
	for (int i = 0; i < 4; i += 2) {
		int value;

		if (B(in[i] == 'q'))
			return;
		value = digit(in[i + 1]);
		if (B(value < 0))
			return;
		if (B(in[i] == 's')) {
			pm[8] = (uint64_t)value;
			PERSIST(pm + 8);
		} else if (B(in[i] == 'd')) {
			pm[8] = 0; /* finds: missing-flush */
			if (B(value == 5))
				return;
			PERSIST(pm + 8);
		} else if (B(in[i] != 'g')) {
			return;
		}
	}
}
