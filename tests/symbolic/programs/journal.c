/* SPDX-License-Identifier: BSD-3-Clause */
/* Entries, and a commit; one kind of entry forgets its fence. */
#define BYTES 4
#define ALPHABET "iudcx"
#include "explore.h"

static void run(uint64_t *pm, const uint8_t *in)
{
	int dirty = 0;

	for (int i = 0; i < 4; i++) {
		uint64_t *entry = pm + 8 * (i + 1);

		if (B(in[i] == 'i')) {
			*entry = 1;
			PERSIST(entry);
			dirty = 1;
		} else if (B(in[i] == 'u')) {
			*entry = 2; /* finds: missing-fence */
			CLWB(entry);
			dirty = 1;
		} else if (B(in[i] == 'c')) {
			if (dirty) {
				*pm = (uint64_t)i + 1;
				PERSIST(pm);
			}
			dirty = 0;
		} else if (B(in[i] == 'd')) {
			*entry = 3; /* finds: missing-flush */
			return;
		}
	}
}
