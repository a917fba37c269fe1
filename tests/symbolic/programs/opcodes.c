/* SPDX-License-Identifier: BSD-3-Clause */
/* A little machine; switch statements become several decisions. */
#define BYTES 3
#define ALPHABET "\0\1\2\3\4\5\6\7\377"
#include "explore.h"

/* As a switch is explored: one case after the other. */
static int choose(uint8_t op)
{
#ifdef ENUMERATE
	for (int i = 1; i <= 5; i++)
		if (B(op == i))
			return i;
	return 0;
#else
	switch (op) {
	case 1:
		return 1;
	case 2:
		return 2;
	case 3:
		return 3;
	case 4:
		return 4;
	case 5:
		return 5;
	default:
		return 0;
	}
#endif
}

static void run(uint64_t *pm, const uint8_t *in)
{
	uint64_t accumulator = 7;

	for (int i = 0; i < 3; i++)
		switch (choose(in[i])) {
		case 1:
			accumulator += 3;
			break;
		case 2:
			accumulator *= 2;
			break;
		case 3:
			pm[0] = accumulator;
			PERSIST(pm);
			break;
		case 4:
			if (accumulator == 20)
				pm[16] = accumulator; /* finds: missing-flush */
			break;
		case 5:
			return;
		default:
			break;
		}
}
