/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --sym-recover: inputs for recoveries, by exploring the recovery on what a run has left in PM.
 */
#ifndef DRIVE_RECOVERIES_H
#define DRIVE_RECOVERIES_H

#include "session/session.h"

struct recoveries {
	char **explorer; /* a command that appends inputs to `fd`; null: recoveries have none */
	int fd;
	struct explore_kept *list;
	uint32_t count;
};

/*
 * Explores the recovery with PM files as the program has left them, and adds inputs to the list;
 * the number of the first new one. False after a message.
 */
bool recoveries_find(struct recoveries *recoveries, const struct session *session, uint32_t *first);

#endif
