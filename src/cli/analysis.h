/* SPDX-License-Identifier: BSD-3-Clause */
/* What all analyses have in common: what comes before the program runs, and after it. */
#ifndef CLI_ANALYSIS_H
#define CLI_ANALYSIS_H

#include <sys/types.h>

#include "cli/options.h"
#include "report/finding.h"

/* Reads what the options name and makes a session. Returns 0, or the status to end with. */
int analysis_prepare(struct options *options, int *fd, struct session **result);

/*
 * Judges what is left, reports, and says with what status to end. `budget` is what ended the
 * program early, or null; `pid` stands for %p in file names.
 */
int analysis_finish(const struct options *options, struct session *session, int session_fd,
		    struct result *result, const char *budget, pid_t pid);

#endif
