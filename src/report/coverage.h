/* SPDX-License-Identifier: BSD-3-Clause */
/* Which instructions that change PM an exploration has reached, and what kept it from the others.
 */
#ifndef REPORT_COVERAGE_H
#define REPORT_COVERAGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { COVERAGE_GUARDS = 3 };

struct coverage_place {
	char *file; /* as the compiler was given it */
	unsigned line, column;
	bool reached;
	/* Branches that must be taken on the way there, the nearest first. */
	unsigned guards;
	struct coverage_guard {
		char *file;
		uint64_t site;
		unsigned line, column, way;
		uint32_t taken, not_taken; /* decisions that depended on the input */
	} guard[COVERAGE_GUARDS];
};

struct coverage {
	struct coverage_place *place;
	size_t places;
	bool complete; /* every path was explored: what was not reached cannot be */
};

json_t *coverage_json(const struct coverage *coverage);
/* "-" is standard output. -1 with errno. */
int coverage_write(const char *path, const struct coverage *coverage);

#endif
