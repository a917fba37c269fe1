/* SPDX-License-Identifier: BSD-3-Clause */
/* What the registers of a hit say. */
#ifndef BINARY_REGISTERS_H
#define BINARY_REGISTERS_H

#include "binary/binary.h"

enum { REGISTERS_RSP = 4 };

/* By its number in an encoding; not rsp. */
static inline uint64_t *registers_at(struct binary_registers *r, unsigned number)
{
	/* In descending order, without that one. */
	return &r->r15 + (number > REGISTERS_RSP ? 15 - number : 14 - number);
}

static inline uint64_t registers_value(const struct binary_registers *r, unsigned number)
{
	if (number == REGISTERS_RSP)
		return (uintptr_t)(r + 1) + BINARY_RED_ZONE;
	return *registers_at((struct binary_registers *)r, number);
}

static inline uint64_t registers_address(const struct binary_registers *r,
					 const struct binary_operand *o)
{
	uint64_t address = (int64_t)o->displacement;

	if (o->in_stack)
		address += *(const uint64_t *)(registers_value(r, o->base) + o->slot);
	else if (o->base != BINARY_NO_REGISTER)
		address += registers_value(r, o->base);
	if (o->index != BINARY_NO_REGISTER)
		address += registers_value(r, o->index) * o->scale;
	return (uintptr_t)place_in_window((void *)address);
}

/* Of a BINARY_MOVE. */
static inline uint64_t registers_source(const struct binary_registers *r,
					const struct binary_site *site)
{
	if (site->source == BINARY_IMMEDIATE)
		return (uint64_t)(int64_t)site->immediate;
	return registers_value(r, site->source & 15) >> (site->source & BINARY_HIGH ? 8 : 0);
}

/*
 * Will a locked instruction change nothing there, because what it waits for is not so yet? Somebody
 * else may still be faster.
 */
static inline bool registers_will_fail(const struct binary_registers *r,
				       const struct binary_site *site, const void *p, uint64_t size)
{
	uint64_t now, ones;

	if (site->deed != BINARY_COMPARE && site->deed != BINARY_SWAP)
		return false;
	now = binary_peek(p, size);
	ones = size < sizeof(now) ? (1ull << 8 * size) - 1 : ~0ull;
	if (site->deed == BINARY_COMPARE)
		return (now ^ r->rax) & ones;
	return site->operand[0].actions & BINARY_LOADS &&
	       !((now ^ registers_source(r, site)) & ones);
}

static inline bool registers_has_parts(const struct binary_site *site)
{
	return site->kind == BINARY_LANES || site->kind == BINARY_STATE ||
	       site->kind == BINARY_COMPACT_STATE;
}

#endif
