/* SPDX-License-Identifier: BSD-3-Clause */
/* Which library models are used: those that come with Perdure, then the user's. */
#ifndef CLI_MODELS_H
#define CLI_MODELS_H

#include "cli/options.h"

/* Returns 0, or the status to end with, after a message on standard error. */
int models_load(struct library_table *table, const struct options *options);

#endif
