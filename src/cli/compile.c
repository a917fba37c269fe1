/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "drive/target.h"

int command_compile(const char *tool, char **words)
{
	char path[PATH_MAX];
	size_t count = 0;
	char **arguments;

	if (!target_own_prefix(path, sizeof(path)))
		return EXIT_CANNOT_WORK;
	strncat(path, "/bin/", sizeof(path) - strlen(path) - 1);
	strncat(path, tool, sizeof(path) - strlen(path) - 1);
	while (words[count])
		count++;
	arguments = calloc(count + 2, sizeof(*arguments));
	if (!arguments)
		abort();
	arguments[0] = path;
	memcpy(arguments + 1, words, count * sizeof(*words));
	execv(path, arguments);
	fprintf(stderr, "perdure: cannot run %s: %s\n", path, strerror(errno));
	return EXIT_CANNOT_WORK;
}
