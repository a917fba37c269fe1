/* SPDX-License-Identifier: BSD-3-Clause */
/* For hashes: all bits of both, in one multiplication. */
#ifndef MODEL_MIX_H
#define MODEL_MIX_H

#include <stdint.h>

static inline uint64_t mix(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

#endif
