/* SPDX-License-Identifier: BSD-3-Clause */
/* The kinds of findings: stable names that users, suppressions and CI rely on. */
#ifndef SESSION_KINDS_H
#define SESSION_KINDS_H

#include <stdbool.h>
#include <stdint.h>

enum finding_kind {
	KIND_MISSING_FLUSH,
	KIND_MISSING_FENCE,
	KIND_REDUNDANT_FLUSH,
	KIND_REDUNDANT_FENCE,
	KIND_OVERWRITE_UNPERSISTED,
	KIND_STORE_OUTSIDE_TX,
	KIND_DUPLICATE_TX_ADD,
	KIND_TRANSIENT_DATA,
	KIND_CROSS_FAILURE_RACE,
	KIND_CROSS_FAILURE_SEMANTIC,
	KIND_TORN_STORE,
	KIND_CRASH_SYMPTOM,
	KIND_THREAD_RACE,
	KIND_CUSTOM,
	KIND_COUNT
};

struct kind_info {
	const char *name;
	bool correctness; /* otherwise performance */
	bool on_by_default;
	bool in_eadr;        /* can occur at all when caches are persistent */
	const char *summary; /* one line, for tables and headings */
	const char *help;    /* why it matters and what to do */
};

/* Never null for kind < KIND_COUNT. */
const struct kind_info *kind_info(enum finding_kind kind);

/* The kind with this name, or KIND_COUNT. */
enum finding_kind kind_by_name(const char *name);

/* Bit set of the kinds that are on by default, one bit a kind. */
uint32_t kinds_default(void);

const char *kind_severity(enum finding_kind kind);

#endif
