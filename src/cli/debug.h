/* SPDX-License-Identifier: BSD-3-Clause */
/* perdure replay --gdb and --image: what a crash leaves, for debuggers and other tools. */
#ifndef CLI_DEBUG_H
#define CLI_DEBUG_H

#include <jansson.h>
#include <stdbool.h>

/*
 * Writes PM as the crash of a finding leaves it, with what the recovery read. The result is that of
 * perdure --json. False after a message.
 */
bool debug_save_image(const json_t *result, const json_t *finding, const char *path);

/*
 * gdb on the recovery, with PM as the crash leaves it, or, without a crash, on the program; it
 * stops where the finding is. The user's files are back afterwards. The status to end with.
 */
int debug_run(const json_t *result, const json_t *finding);

#endif
