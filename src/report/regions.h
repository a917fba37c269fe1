/* SPDX-License-Identifier: BSD-3-Clause */
/* --dump-regions: where regions start, as text or as a graph. */
#ifndef REPORT_REGIONS_H
#define REPORT_REGIONS_H

#include <stdbool.h>

#include "session/session.h"

/* To this file, or "-". False after a message. */
bool regions_write(const struct session *session, const char *path);

#endif
