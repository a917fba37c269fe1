/* SPDX-License-Identifier: BSD-3-Clause */
#include "drive/driver.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drive/target.h"

enum { GRACE_SECONDS = 2 };

void driver_start(struct driver *driver, const char *command)
{
	*driver = (struct driver){ .command = command };
}

/* The client is nobody's target. */
static void become_client(const char *command, bool quiet)
{
	static const char *const ours[] = { "PERDURE_SESSION", "PERDURE_EXECUTION", "LD_PRELOAD" };

	for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
		unsetenv(ours[i]);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0);
	if (quiet) {
		int null = open("/dev/null", O_RDWR);

		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
	}
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

void driver_tick(struct driver *driver, bool listens, bool quiet, int target)
{
	if (!driver->command || target <= 0)
		return;
	if (!driver->started && listens) {
		driver->started = true;
		driver->pid = fork();
		if (driver->pid == 0)
			become_client(driver->command, quiet);
		driver->done = driver->pid < 0;
	}
	if (driver->started && !driver->done && waitpid(driver->pid, &driver->status, WNOHANG) != 0)
		driver->done = true;
	if (driver->done && !driver->stopped) {
		driver->stopped = true;
		driver->stopped_at = target_now();
		kill(target, SIGTERM);
	}
	if (driver->stopped && target_now() - driver->stopped_at > GRACE_SECONDS) {
		target_signal_below(target, SIGKILL);
		kill(target, SIGKILL);
	}
}

bool driver_is_busy(const struct driver *driver)
{
	return driver->started && !driver->done;
}

void driver_end(struct driver *driver)
{
	if (driver_is_busy(driver)) {
		kill(-driver->pid, SIGKILL);
		waitpid(driver->pid, NULL, 0);
	}
	driver->done = true;
}

bool driver_did_its_work(const struct driver *driver)
{
	if (!driver->command)
		return true;
	if (!driver->started)
		fprintf(stderr, "perdure: --drive: the program never listened on a socket\n");
	else if (WIFEXITED(driver->status) && WEXITSTATUS(driver->status))
		fprintf(stderr, "perdure: --drive: the command ended with status %d\n",
			WEXITSTATUS(driver->status));
	else
		return true;
	return false;
}

/* ---- one run ---- */

struct drive {
	struct driver *driver;
	const struct session *session;
};

static void tick(void *context, int target)
{
	struct drive *drive = context;

	driver_tick(drive->driver, drive->session->serves, false, target);
}

static void ended(void *context, int pid, int status)
{
	struct driver *driver = ((struct drive *)context)->driver;

	if (pid != driver->pid)
		return;
	driver->done = true;
	driver->status = status;
}

bool driver_run(struct driver *driver, char **command, const struct session *session,
		const struct target_limits *limits, struct target_end *end)
{
	struct drive drive = { driver, session };
	const struct target_company company = { tick, ended, &drive };
	bool done = target_run_again(command, limits, &company, end);

	driver_end(driver);
	if (driver->stopped)
		end->signal = 0; /* it was told to */
	return done && (end->budget || driver_did_its_work(driver));
}
