/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Old C and C++ that gcc accepts and clang does not. What gcc 12 only warns about is accepted here,
 * too, with a note that names the flag; for the rest the message says what helps.
 */
#ifndef COMPILE_HINTS_H
#define COMPILE_HINTS_H

#include <stdbool.h>

#include "compile/arguments.h"

/*
 * Looks at the messages of a failed compilation. Adds to `flags` what would make clang accept what
 * gcc accepts; false if there is nothing, or if an error remains that gcc would report, too.
 * `strict`: the user wants warnings to be errors.
 */
bool hints_flags(const char *messages, bool cxx, bool strict, struct arguments *flags);

/* Prints a line for each flag or change that would help; `accepted`: the flags were given. */
void hints_print(const char *messages, bool accepted);

#endif
