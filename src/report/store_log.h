/* SPDX-License-Identifier: BSD-3-Clause */
/* The store log of pmemcheck (--log-stores=yes), which pmreorder reads. */
#ifndef REPORT_STORE_LOG_H
#define REPORT_STORE_LOG_H

#include <jansson.h>

#include "session/session.h"

/* Writes what a run did to PM. -1 with errno. */
int store_log_write(const char *path, const struct session *session);
/* Reads such a log and judges it, as a JSON result; null with errno. */
json_t *store_log_judge(const char *path);

#endif
