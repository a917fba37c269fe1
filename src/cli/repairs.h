/* SPDX-License-Identifier: BSD-3-Clause */
/* --check-recovery: which stores recoveries would miss. */
#ifndef CLI_REPAIRS_H
#define CLI_REPAIRS_H

#include "cli/options.h"

/*
 * Runs perdure check on the same program. "file:line" of all stores that are part of one of its
 * findings, null at the end; null if it could not be done.
 */
char **repairs_find(const struct options *options);

#endif
