/* SPDX-License-Identifier: BSD-3-Clause */
/* A result as one HTML file, for a browser, without network. */
#ifndef REPORT_HTML_H
#define REPORT_HTML_H

#include <jansson.h>

#include "report/finding.h"

/* -1 with errno set if it could not be written. "-" is standard output. */
int write_html(const char *path, const struct result *result);
/* The same from a JSON result, which is changed. */
int html_write(const char *path, json_t *result);

#endif
