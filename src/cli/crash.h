/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLI_CRASH_H
#define CLI_CRASH_H

#include "cli/options.h"
#include "drive/given.h"
#include "report/finding.h"

/*
 * Crash injection: with one run of the program, or one for each input that is given. `exhaustive`:
 * as perdure model. Reports, and returns the status to end with.
 */
int crash_everywhere(struct options *options, bool exhaustive, struct given *given,
		     struct result *result);

#endif
