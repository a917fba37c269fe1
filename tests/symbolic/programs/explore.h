/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program to explore is one function of some bytes of input, whose branches are written B(…), and
 * symbolic indices into PM, each of which is a path of its own, A(…).
 * With -DENUMERATE the same function is run on all inputs, without a solver: the number of ways
 * that the branches can go is printed, and must be the number of paths.
 */
#ifndef EXPLORE_H
#define EXPLORE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../programs/pm.h"

static void run(uint64_t *pm, const uint8_t *in);

#ifdef ENUMERATE

enum { TRACES = 1 << 20 };
static uint64_t trace, seen[TRACES];

static int B(int taken)
{
	trace = (trace ^ (taken ? 0x1234567 : 0x89abcde)) * 0x9e3779b97f4a7c15ull;
	trace ^= trace >> 29;
	return taken;
}

static unsigned A(unsigned index)
{
	trace = (trace ^ index) * 0x9e3779b97f4a7c15ull;
	trace ^= trace >> 31;
	return index;
}

static int note(uint64_t value)
{
	uint64_t at = value % TRACES;

	for (; seen[at]; at = (at + 1) % TRACES)
		if (seen[at] == value)
			return 0;
	seen[at] = value;
	return 1;
}

/* All bytes, or those of an alphabet that has all that matter. */
int main(void)
{
	static uint64_t pm[PM_SIZE / 8];
#ifdef ALPHABET
	static const char alphabet[] = ALPHABET;
	unsigned letters = sizeof(alphabet) - 1;
#else
	unsigned letters = 256;
#endif
	uint64_t inputs = 1, paths = 0;
	uint8_t in[BYTES];

	for (int i = 0; i < BYTES; i++)
		inputs *= letters;
	for (uint64_t n = 0; n < inputs; n++) {
		uint64_t rest = n;

		for (int i = 0; i < BYTES; i++, rest /= letters)
#ifdef ALPHABET
			in[i] = (uint8_t)alphabet[rest % letters];
#else
			in[i] = (uint8_t)(rest % letters);
#endif
		trace = 1;
		memset(pm, 0, 4096);
		run(pm, in);
		paths += note(trace);
	}
	printf("%lu\n", paths);
	return 0;
}

#else

#define B(condition) (condition)
#define A(index) (index)

int main(int argc, char **argv)
{
	uint64_t *pm = pm_map(argv);
	uint8_t in[BYTES];

	(void)argc;
	if (read(STDIN_FILENO, in, BYTES) != BYTES)
		return 1;
	run(pm, in);
	return 0;
}

#endif

#endif
