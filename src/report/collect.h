/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps from raw findings to a result, for collect.c. */
#ifndef REPORT_COLLECT_H
#define REPORT_COLLECT_H

#include <string.h>

#include "report/finding.h"

/* The store that it is about: the first one among its sites; null if there is none. */
static inline const struct site *finding_store(const struct finding *f)
{
	for (unsigned i = 0; i < f->sites; i++)
		if (strcmp(f->site[i].role, "store") == 0)
			return &f->site[i];
	return NULL;
}

static inline bool finding_is_logging(const struct finding *f)
{
	return strcmp(f->site[0].role, "tx") == 0;
}

/* ---- describe.c ---- */

/* Fills in roles, message, field and fix; the sites are already named. */
void finding_describe(struct finding *f, const struct raw_finding *raw,
		      const struct session *session);

/* ---- identity.c ---- */

/* Equal for findings that read the same to a person. */
uint64_t finding_reading(const struct finding *f);

/* Fingerprints, causes, and the order in which findings are shown. */
void result_identify(struct result *result);

#endif
