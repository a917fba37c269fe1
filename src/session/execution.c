/* SPDX-License-Identifier: BSD-3-Clause */
#include "session/execution.h"

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 29;
}

uint64_t execution_hash(const unsigned char *line, uint64_t bytes)
{
	uint64_t hash = bytes, word = 0;
	unsigned count = 0;

	for (; bytes; bytes &= bytes - 1) {
		word = word << 8 | line[__builtin_ctzll(bytes)];
		if (++count % 8 == 0)
			hash = mix(hash, word);
	}
	return mix(hash, word);
}

uint64_t execution_hash_text(const char *text)
{
	uint64_t hash = 1;

	while (*text)
		hash = mix(hash, (unsigned char)*text++);
	return hash;
}
