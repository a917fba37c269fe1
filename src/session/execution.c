/* SPDX-License-Identifier: BSD-3-Clause */
#include "session/execution.h"

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 29;
}

/* Eight bits as eight bytes of ones or zeroes. */
static uint64_t spread(uint64_t bits)
{
	const uint64_t each = 0x0101010101010101ull, low = 0x7f * each;
	uint64_t chosen = (bits * each) & 0x8040201008040201ull;

	return ((((chosen & low) + low) | chosen) >> 7 & each) * 0xff;
}

uint64_t execution_hash(const unsigned char *line, uint64_t bytes)
{
	uint64_t hash = bytes;

	for (unsigned i = 0; i < 8; i++) {
		uint64_t bits = bytes >> 8 * i & 0xff, word;

		if (!bits)
			continue;
		__builtin_memcpy(&word, line + 8 * i, sizeof(word));
		hash = mix(hash, word & spread(bits));
	}
	return hash;
}

uint64_t execution_hash_text(const char *text)
{
	uint64_t hash = 1;

	while (*text)
		hash = mix(hash, (unsigned char)*text++);
	return hash;
}
