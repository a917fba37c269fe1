/* SPDX-License-Identifier: BSD-3-Clause */
#include "checkers/checkers.h"

static struct session *current;
static unsigned muted;

void checkers_start(struct session *session)
{
	static struct lines_listener wanted;
	static const struct lines_listener *const all[] = { &wanted, NULL };

	current = session;
	wanted = pattern_checker;
	if (!(session->options.enabled & 1u << KIND_OVERWRITE_UNPERSISTED))
		wanted.overwritten = NULL; /* which would hear much */
	lines_listen(all);
}

void checkers_mute(bool begin)
{
	muted += begin ? 1 : -(muted > 0);
}

bool checkers_are_muted(void)
{
	return muted != 0;
}

uint32_t checkers_report(const struct raw_finding *finding, uint32_t owner)
{
	/* What is lost is lost wherever it is judged. */
	if (muted && finding->kind != KIND_MISSING_FLUSH && finding->kind != KIND_MISSING_FENCE)
		return 0;
	if (!(current->options.enabled & 1u << finding->kind))
		return 0;
	return raw_add(&current->raw, finding, owner);
}
