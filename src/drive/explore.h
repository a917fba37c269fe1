/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perdure explore: starts the program, whose first process forks all paths (symbolic/states.c), and
 * the solvers; watches them, and ends them.
 */
#ifndef DRIVE_EXPLORE_H
#define DRIVE_EXPLORE_H

#include "drive/target.h"
#include "session/session.h"

struct steer;

struct explore_run {
	struct session *session;
	int session_fd;
	char **command;
	double max_time; /* 0: none */
	long max_memory; /* MiB; 0: half of the machine's */
	bool shows_progress;
	struct steer *steer; /* what was found out beforehand */
};

/* Until there are no more states, or a budget is used up. False with a message if it cannot be. */
bool explore_run(const struct explore_run *run, struct target_end *end);

#endif
