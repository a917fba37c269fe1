/* SPDX-License-Identifier: BSD-3-Clause */
/* The line on a terminal that says how far a check is. */
#ifndef DRIVE_PROGRESS_H
#define DRIVE_PROGRESS_H

#include <stdbool.h>

struct check;

struct progress {
	bool on, shown;
	double started, last;
};

void progress_show(struct progress *progress, const struct check *check);
void progress_end(struct progress *progress);

#endif
