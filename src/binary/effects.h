/* SPDX-License-Identifier: BSD-3-Clause */
/* What an instruction does to registers and the stack, as far as addresses can be followed through
 * it. */
#ifndef BINARY_EFFECTS_H
#define BINARY_EFFECTS_H

#include "binary/binary.h"

enum binary_effect_kind {
	BINARY_OTHER,   /* what is written has no value that could be told before */
	BINARY_COPIES,  /* to = from */
	BINARY_FORMS,   /* to = from + index * scale + number */
	BINARY_ADDS,    /* to += number */
	BINARY_SHIFTS,  /* to <<= number */
	BINARY_RELOADS, /* to = 8 bytes in the stack, `number` behind register `from` */
};

struct binary_effect {
	uint8_t kind, to, from, index, scale;
	int32_t number;
	uint32_t written;     /* registers, one bit each */
	int32_t stack_change; /* what it adds to rsp, if it only does that */
	bool moves_stack;     /* it does something else to rsp */
	bool calls;
	bool ends; /* and does not come back */
	bool stores_in_stack;
	uint8_t stack_base;
	int32_t stored_at, stored_size; /* behind that register */
	bool takes_address;             /* of something in the stack: FORMS with rsp or rbp */
	bool jumps_anywhere;            /* to what a register or memory says */
	int32_t table; /* lea of a place in this object: where, from the text's start */
	bool has_table;
	uintptr_t goal; /* of a call: where it leads, or 0 */
	uintptr_t slot; /* … through a pointer in memory here, or 0 */
};

HIDDEN bool binary_effect_of(const struct binary_text *text, uint32_t offset,
			     struct binary_effect *effect);
/* Where a stub `jmp *pointer` at this address finds its pointer; 0 if it is none. */
HIDDEN uintptr_t binary_stub_slot(uintptr_t address);

#endif
