/* SPDX-License-Identifier: BSD-3-Clause */
/* Old C that gcc accepts and clang does not: which flag helps. */
#ifndef COMPILE_HINTS_H
#define COMPILE_HINTS_H

#include "compile/arguments.h"

/* After a failed compilation: looks at its messages again and prints what would help, if any. */
void hints_print(const struct arguments *command, const char *clang);

#endif
