/* SPDX-License-Identifier: BSD-3-Clause */
/* Names for addresses, from DWARF, with one entry for every inlined function. */
#ifndef REPORT_SYMBOLS_H
#define REPORT_SYMBOLS_H

#include <elfutils/libdwfl.h>

#include "report/finding.h"

/*
 * Fills in the frames of a stack of the session, from the innermost to main. The result stays
 * valid until the process ends.
 */
void symbols_resolve(const struct session *session, uint32_t stack, struct site *site);

/* The debug information of an object, opened once; null if it cannot be read. */
Dwfl_Module *symbols_module(const char *path);

/* The unit of an address in an object, and the address as its debug information has it. */
bool symbols_unit(const char *path, uint64_t offset, Dwarf_Die *unit, Dwarf_Addr *address);

/* As the source has it; allocated. */
char *symbols_demangle(const char *name);

#endif
