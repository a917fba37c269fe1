/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/last.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "session/execution.h"

bool last_path(char *path, size_t size)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	char here[PATH_MAX], directory[PATH_MAX];

	if (!getcwd(here, sizeof(here)))
		return false;
	if (state && *state == '/')
		snprintf(directory, sizeof(directory), "%s/perdure", state);
	else if (home && *home == '/')
		snprintf(directory, sizeof(directory), "%s/.local/state/perdure", home);
	else
		return false;
	return (size_t)snprintf(path, size, "%s/last-%016lx.json", directory,
				execution_hash_text(here)) < size;
}

static bool stays;

void last_stays(void)
{
	stays = true;
}

bool last_prepare(const char *path)
{
	char part[PATH_MAX];

	if (stays)
		return false;
	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
		if (mkdir(part, 0700) < 0 && errno != EEXIST)
			return false;
	}
	return true;
}
