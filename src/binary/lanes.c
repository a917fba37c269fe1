/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Instructions that touch some of many elements: under a mask, compressed, gathered or scattered;
 * and those that keep or restore the processor's state. Which bytes they touch is in registers.
 */
#include <cpuid.h>
#include <string.h>

#include "binary/binary.h"

enum { LEGACY = 512, HEADER = 64, XMM = 160 };
enum component { UPPER_HALVES = 2, MASKS = 5, UPPER_ZMM = 6, HIGH_ZMM = 7 };

/* ---- registers, in what the entry has kept of them ---- */

static uint64_t component_size(unsigned number, bool *aligned)
{
	unsigned size = 0, offset, flags = 0, d;

	__cpuid_count(0xd, number, size, offset, flags, d);
	*aligned = flags & 2;
	return size;
}

/* Where a component is; null if all of it is zero. */
static const unsigned char *find_component(const unsigned char *state, unsigned number)
{
	uint64_t valid, compact, at = LEGACY + HEADER;
	unsigned size, offset = 0, c, d;
	bool aligned;

	memcpy(&valid, state + LEGACY, sizeof(valid));
	memcpy(&compact, state + LEGACY + 8, sizeof(compact));
	if (!(valid >> number & 1))
		return NULL;
	if (!(compact >> 63)) {
		__cpuid_count(0xd, number, size, offset, c, d);
		return state + offset;
	}
	for (unsigned i = 2; i < number; i++)
		if (compact >> i & 1) {
			uint64_t length = component_size(i, &aligned);

			at = (aligned ? (at + 63) & ~63ull : at) + length;
		}
	component_size(number, &aligned);
	return state + (aligned ? (at + 63) & ~63ull : at);
}

static void copy_part(const unsigned char *state, enum component component, unsigned index,
		      unsigned size, unsigned char *to)
{
	const unsigned char *from = find_component(state, component);

	if (from)
		memcpy(to, from + index * size, size);
}

static void vector_value(const unsigned char *state, unsigned number, unsigned char value[64])
{
	uint64_t valid;

	memset(value, 0, 64);
	if (number >= 16) {
		copy_part(state, HIGH_ZMM, number - 16, 64, value);
		return;
	}
	memcpy(&valid, state + LEGACY, sizeof(valid));
	if (valid >> 1 & 1)
		memcpy(value, state + XMM + number * 16, 16);
	copy_part(state, UPPER_HALVES, number, 16, value + 16);
	copy_part(state, UPPER_ZMM, number, 32, value + 32);
}

static uint64_t mask_value(const unsigned char *state, unsigned number)
{
	uint64_t value = 0;

	copy_part(state, MASKS, number, 8, (unsigned char *)&value);
	return value;
}

/* ---- elements ---- */

/* One bit an element. */
static uint64_t chosen(const struct binary_lanes *lanes, const unsigned char *state)
{
	uint64_t all = lanes->count < 64 ? (1ull << lanes->count) - 1 : ~0ull, mask = 0;
	unsigned char value[64];

	if (lanes->mask == BINARY_NO_REGISTER)
		return all;
	if (!lanes->vector_mask)
		return mask_value(state, lanes->mask) & all;
	vector_value(state, lanes->mask, value);
	for (unsigned i = 0; i < lanes->count; i++) /* the highest bit of each element */
		mask |= (uint64_t)(value[(i + 1) * lanes->element - 1] >> 7) << i;
	return mask;
}

static void add_part(struct binary_parts *parts, uint64_t address, uint64_t size)
{
	struct binary_part *last = parts->count ? &parts->part[parts->count - 1] : NULL;

	if (last && last->address + last->size == address)
		last->size += size;
	else if (parts->count < BINARY_PARTS)
		parts->part[parts->count++] = (struct binary_part){ address, size };
}

static uint64_t index_value(const unsigned char *value, unsigned number, unsigned size)
{
	int32_t narrow;
	uint64_t wide;

	if (size == 4) {
		memcpy(&narrow, value + number * 4, 4);
		return (uint64_t)(int64_t)narrow;
	}
	memcpy(&wide, value + number * 8, 8);
	return wide;
}

void binary_list_lanes(const struct binary_lanes *lanes, uint64_t address,
		       const unsigned char *state, struct binary_parts *parts)
{
	uint64_t mask = chosen(lanes, state);
	unsigned char index[64] = { 0 };

	parts->count = 0;
	if (lanes->compressed) {
		add_part(parts, address, (uint64_t)__builtin_popcountll(mask) * lanes->element);
		return;
	}
	if (lanes->index_size)
		vector_value(state, lanes->index, index);
	for (unsigned i = 0; i < lanes->count; i++)
		if (mask >> i & 1)
			add_part(parts,
				 address + (lanes->index_size
						    ? index_value(index, i, lanes->index_size) *
							      lanes->scale
						    : (uint64_t)i * lanes->element),
				 lanes->element);
}

/* ---- the processor's state ---- */

void binary_list_state(uint64_t address, uint64_t wanted, bool compact, struct binary_parts *parts)
{
	uint64_t at = LEGACY + HEADER;
	unsigned low, high, size, offset, flags, d;

	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	wanted &= (uint64_t)high << 32 | low;
	parts->count = 0;
	add_part(parts, address, LEGACY + HEADER);
	for (unsigned i = 2; i < 63; i++) {
		if (!(wanted >> i & 1))
			continue;
		__cpuid_count(0xd, i, size, offset, flags, d);
		at = flags & 2 ? (at + 63) & ~63ull : at;
		add_part(parts, address + (compact ? at : offset), size);
		at += size;
	}
}
