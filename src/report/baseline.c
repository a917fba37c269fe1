/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/baseline.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/map.h"

static struct map causes;
static bool loaded;

static int read_finding(const json_t *finding)
{
	const char *text = json_string_value(json_object_get(finding, "cause_fingerprint"));
	char *end;
	uint64_t value;

	if (!text)
		return -1;
	value = strtoull(text, &end, 16);
	if (*end)
		return -1;
	map_get_or_put(&causes, value, 1);
	return 0;
}

int baseline_read(const char *path, char *error, size_t size)
{
	json_error_t problem;
	json_t *root = json_load_file(path, 0, &problem), *finding;
	const json_t *findings = json_object_get(root, "findings");
	const char *tool;
	size_t i;
	int status = 0;

	if (!root) {
		snprintf(error, size, "%s%s", problem.text,
			 problem.line > 0 ? " (is it a file that --json wrote?)" : "");
		return -1;
	}
	tool = json_string_value(json_object_get(root, "tool"));
	if (json_integer_value(json_object_get(root, "version")) != 1 || !json_is_array(findings) ||
	    !tool || strcmp(tool, "perdure") != 0) {
		snprintf(error, size, "is no result of version 1, as --json writes it");
		status = -1;
	}
	json_array_foreach(findings, i, finding) if (status == 0 && read_finding(finding) < 0)
	{
		snprintf(error, size, "finding %zu has no cause_fingerprint", i + 1);
		status = -1;
	}
	json_decref(root);
	loaded = status == 0;
	return status;
}

void baseline_apply(struct result *result)
{
	for (size_t i = 0; loaded && i < result->findings; i++) {
		struct finding *f = &result->finding[i];

		f->known = map_get_or_put(&causes, f->cause_fingerprint, 0) == 1;
	}
}
