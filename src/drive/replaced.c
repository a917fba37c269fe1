/* SPDX-License-Identifier: BSD-3-Clause */
#include "drive/replaced.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The user's own file of that name waits beside it. */
bool replaced_put(struct replaced *replaced, const char *path, const void *bytes, size_t size)
{
	unsigned i = replaced->files;
	struct stat status;
	FILE *file;

	if (i == REPLACED_FILES)
		return false;
	replaced->file[i].path = strdup(path);
	replaced->file[i].saved = NULL;
	if (stat(path, &status) == 0) {
		if (asprintf(&replaced->file[i].saved, "%s.perdure-%d", path, getpid()) < 0)
			abort();
		if (rename(path, replaced->file[i].saved) < 0)
			return false;
	}
	replaced->files++;
	file = fopen(path, "we");
	if (!file)
		return false;
	fwrite(bytes, 1, size, file);
	return fclose(file) == 0;
}

void replaced_restore(struct replaced *replaced)
{
	for (unsigned i = 0; i < replaced->files; i++) {
		unlink(replaced->file[i].path);
		if (replaced->file[i].saved &&
		    rename(replaced->file[i].saved, replaced->file[i].path) < 0)
			fprintf(stderr, "perdure: %s is now called %s\n", replaced->file[i].path,
				replaced->file[i].saved);
		free(replaced->file[i].path);
		free(replaced->file[i].saved);
	}
	replaced->files = 0;
}
