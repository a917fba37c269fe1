/* SPDX-License-Identifier: BSD-3-Clause */
/* The last result of each directory, so that `perdure replay ID` needs no file. */
#ifndef CLI_LAST_H
#define CLI_LAST_H

#include <stdbool.h>
#include <stddef.h>

/* Where it is kept: below XDG_STATE_HOME or ~/.local/state. False if there is no such
 * place. */
bool last_path(char *path, size_t size);
/* A replay is no result of its own. */
void last_stays(void);
/* Makes the directories of such a path, if a result may be written there. */
bool last_prepare(const char *path);

#endif
