/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of the user that make room for those of an input, and come back. */
#ifndef DRIVE_REPLACED_H
#define DRIVE_REPLACED_H

#include <stdbool.h>
#include <stddef.h>

enum { REPLACED_FILES = 64 };

struct replaced {
	unsigned files;
	struct {
		char *path, *saved; /* null: there was none */
	} file[REPLACED_FILES];
};

bool replaced_put(struct replaced *replaced, const char *path, const void *bytes, size_t size);
void replaced_restore(struct replaced *replaced);

#endif
