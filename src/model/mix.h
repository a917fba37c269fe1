/* SPDX-License-Identifier: BSD-3-Clause */
/* For hashes. */
#ifndef MODEL_MIX_H
#define MODEL_MIX_H

#include <stdint.h>

/* All bits of both, in one multiplication. */
static inline uint64_t mix(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Where a key belongs in a table whose size is a power of two, to be cut to that. */
static inline uint32_t spread(uint64_t key)
{
	return (uint32_t)(key * 0x9e3779b97f4a7c15ull >> 32);
}

#endif
