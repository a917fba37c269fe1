/* SPDX-License-Identifier: BSD-3-Clause */
#include "symbolic/libc/libc.h"

/* std::hash of bytes: MurmurHash64A, as libstdc++ has it, for its containers' order is seen. */
size_t own_hash(const void *bytes, size_t length, size_t seed) LIBC(_ZSt11_Hash_bytesPKvmm);

static uint64_t mix(uint64_t v)
{
	return v ^ v >> 47;
}

size_t own_hash(const void *bytes, size_t length, size_t seed)
{
	const uint64_t factor = 0xc6a4a7935bd1e995ull;
	const unsigned char *p = bytes;
	uint64_t hash = seed ^ length * factor, last = 0;

	for (; length >= 8; length -= 8, p += 8) {
		uint64_t word;

		__builtin_memcpy(&word, p, 8);
		hash = (hash ^ mix(word * factor) * factor) * factor;
	}
	if (length) {
		for (size_t i = length; i-- > 0;)
			last = last << 8 | p[i];
		hash = (hash ^ last) * factor;
	}
	return mix(mix(hash) * factor);
}
