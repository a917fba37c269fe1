/* SPDX-License-Identifier: BSD-3-Clause */
#include "session/kinds.h"

#include <string.h>

static const struct kind_info kinds[KIND_COUNT] = {
	[KIND_MISSING_FLUSH] = { "missing-flush", true, true, false,
				 "a store is never written back to persistent memory" },
	[KIND_MISSING_FENCE] = { "missing-fence", true, true, true,
				 "a store is written back, but no fence ever orders it" },
	[KIND_REDUNDANT_FLUSH] = { "redundant-flush", false, true, false,
				   "a flush has nothing to write back" },
	[KIND_REDUNDANT_FENCE] = { "redundant-fence", false, true, false,
				   "a store fence has nothing to order" },
	[KIND_OVERWRITE_UNPERSISTED] = { "overwrite-unpersisted", false, false, false,
					 "a store is overwritten before it was persistent" },
};

const struct kind_info *kind_info(enum finding_kind kind)
{
	return &kinds[kind];
}

enum finding_kind kind_by_name(const char *name)
{
	for (int kind = 0; kind < KIND_COUNT; kind++)
		if (strcmp(kinds[kind].name, name) == 0)
			return kind;
	return KIND_COUNT;
}

uint32_t kinds_default(void)
{
	uint32_t set = 0;

	for (int kind = 0; kind < KIND_COUNT; kind++)
		if (kinds[kind].on_by_default)
			set |= 1u << kind;
	return set;
}

const char *kind_severity(enum finding_kind kind)
{
	return kinds[kind].correctness ? "correctness" : "performance";
}
