/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --sample: races are watched for a while, then not at all for longer, in turn. A window is open at
 * the start, and one opens when the first threads start.
 */
#ifndef DRIVE_WINDOWS_H
#define DRIVE_WINDOWS_H

#include <stdbool.h>

#include "session/session.h"

/* False if there is no thread to be had for it. Nothing happens where nothing is sampled. */
bool windows_start(struct session *session);
void windows_stop(struct session *session);

#endif
