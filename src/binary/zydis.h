/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files that look into instructions share. */
#ifndef BINARY_ZYDIS_H
#define BINARY_ZYDIS_H

#include <Zydis/Zydis.h>

#include "binary/binary.h"

struct zydis_decoded {
	ZydisDecodedInstruction is;
	ZydisDecodedOperand operand[ZYDIS_MAX_OPERAND_COUNT];
};

HIDDEN bool zydis_decode(const struct binary_text *text, uint32_t offset, struct zydis_decoded *d);
HIDDEN bool zydis_decode_at(uintptr_t address, struct zydis_decoded *d);
/* The number of a whole general register; of any part of one. BINARY_NO_REGISTER for others. */
HIDDEN uint8_t zydis_register(ZydisRegister r);
HIDDEN uint8_t zydis_any_register(ZydisRegister r, bool *whole);

#endif
