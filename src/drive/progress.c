/* SPDX-License-Identifier: BSD-3-Clause */
#include "drive/progress.h"

#include <stdio.h>

#include "drive/check.h"

void progress_show(struct progress *progress, const struct check *check)
{
	const struct check_counts *counts = &check->counts;
	double now = target_now(), passed, rate;

	if (!progress->on)
		return;
	if (!progress->started)
		progress->started = progress->last = now;
	if (now - progress->last < 0.5)
		return;
	progress->last = now;
	progress->shown = true;
	passed = now - progress->started;
	rate = counts->crash_points_done / passed;
	fprintf(stderr,
		"\r\033[Kperdure: crash point %lu of %lu, %lu executions, %lu memo hits, %.0f/s",
		counts->crash_points_done, counts->crash_points_chosen, counts->executions,
		counts->memo_hits, rate);
	if (rate > 0 && passed > 2)
		fprintf(stderr, ", about %.0f s left",
			(counts->crash_points_chosen - counts->crash_points_done) / rate);
	fflush(stderr);
}

void progress_end(struct progress *progress)
{
	if (progress->shown)
		fprintf(stderr, "\r\033[K");
	progress->shown = false;
}
