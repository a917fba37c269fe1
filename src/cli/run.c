/* SPDX-License-Identifier: BSD-3-Clause */
/* perdure run: one native execution, judged by the pattern checkers. */
#include <stdio.h>
#include <unistd.h>

#include "cli/analysis.h"
#include "cli/commands.h"
#include "drive/driver.h"
#include "drive/listener.h"
#include "drive/target.h"

static void print_run_help(void)
{
	printf("perdure run [options] [--] PROG [ARGS]\n\n"
	       "Runs PROG, built with perdure-cc, and reports stores to persistent memory that are\n"
	       "never flushed or fenced, and flushes and fences that do nothing.\n\n");
	options_help(stdout, OPTIONS_RUN);
}

int command_run(char **words)
{
	struct target_limits limits;
	struct driver driver;
	struct target_end end;
	struct session *session;
	struct options options;
	struct result result = { .engine = "run" };
	double started = target_now();
	int fd, status;

	if (options_parse(&options, words, OPTIONS_RUN))
		return EXIT_BAD_USAGE;
	if (options.help) {
		print_run_help();
		return EXIT_NOTHING_FOUND;
	}
	status = analysis_prepare(&options, &fd, &session);
	if (status)
		return status;
	limits = (struct target_limits){ options.max_time, options.timeout, options.max_memory };
	driver_start(&driver, options.drive);
	if (!target_prepare(fd, options.session.heap) ||
	    !driver_run(&driver, options.command, session, &limits, &end)) {
		listener_finish(session, options.max_time);
		return EXIT_CANNOT_WORK;
	}
	result.command = options.command;
	result.exit_status = end.exit_status;
	result.signal = end.signal;
	result.seconds = target_now() - started;
	return analysis_finish(&options, session, fd, &result, end.budget, getpid());
}
