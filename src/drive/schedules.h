/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The schedules under which the program's threads are run before the crash: one, some at random, or
 * all of them up to a number of preemptions.
 */
#ifndef DRIVE_SCHEDULES_H
#define DRIVE_SCHEDULES_H

#include <stdbool.h>
#include <stdint.h>

#include "session/execution.h"

struct schedules {
	/* Settings. */
	enum schedule_policy policy;
	uint64_t seed;
	uint32_t count;       /* 0: as many as there are */
	uint32_t preemptions; /* SCRIPT */
	const char *replay;   /* SCRIPT: this one alone, as schedules_describe has written it */

	/* Where it is. */
	uint32_t done;  /* have run */
	bool measured;  /* the run that only counts points is over */
	bool exhausted; /* SCRIPT: there is no other one */
};

/* Is the next run only there to be measured? Then nothing in it is to be examined. */
bool schedules_is_measuring(const struct schedules *schedules);

/* Prepares the next run. False if there is none left. */
bool schedules_next(struct schedules *schedules, struct schedule_settings *settings);

/* What ran last, as an argument of --schedule. Free it. */
char *schedules_describe(const struct schedules *schedules,
			 const struct schedule_settings *settings);

/* Reads what schedules_describe writes, or the name of a policy. False if it is neither. */
bool schedules_parse(struct schedules *schedules, const char *text);

#endif
