/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of a program by what they are called in its source. */
#ifndef REPORT_FUNCTIONS_H
#define REPORT_FUNCTIONS_H

#include <stdbool.h>

#include "session/races.h"

/* Adds those of a program whose names match the pattern. */
void functions_find(const char *program, const char *pattern, bool acquires,
		    struct session_races *races);

#endif
