/* SPDX-License-Identifier: BSD-3-Clause */
#include "checkers/checkers.h"

static struct session *current;

static const struct lines_listener *const all[] = { &pattern_checker, NULL };

void checkers_start(struct session *session)
{
	current = session;
	lines_listen(all);
}

uint32_t checkers_report(const struct raw_finding *finding, uint32_t owner)
{
	if (!(current->options.enabled & 1u << finding->kind))
		return 0;
	return raw_add(&current->raw, finding, owner);
}
