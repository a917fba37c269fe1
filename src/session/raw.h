/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Raw findings: what checkers say while the program runs, as numbers, counted per kind and call
 * stacks. Lives in shared memory, so nothing is lost when the program dies. Bounded: when one
 * kind has used up its share, further stacks are folded into the entry with the same kind, so no
 * kind is ever lost and the count stays true.
 */
#ifndef SESSION_RAW_H
#define SESSION_RAW_H

#include <stdbool.h>
#include <stdint.h>

#include "session/kinds.h"

enum {
	RAW_PER_KIND = 1 << 15,
	RAW_SLOTS = 1 << 19,
	RAW_ENTRIES = RAW_PER_KIND * KIND_COUNT + 1,
	RAW_SUSPECTS = 4,
	RAW_INPUTS = 3,
};

/* A store that may be torn; one that only code that verifies data has read. */
enum raw_torn { RAW_TORN = 1, RAW_TORN_BENIGN };

struct raw_finding {
	uint32_t kind;
	uint32_t stack;   /* where it is shown */
	uint32_t other;   /* the second site, or 0 */
	uint32_t thread;  /* of the first occurrence */
	uint64_t address; /* of the first occurrence */
	uint64_t size;
	uint64_t count;
	uint64_t event;  /* of the last occurrence: several lines of one store are one occurrence */
	uint64_t part;   /* duplicate-tx-add: how many of the bytes it is about */
	uint32_t place;  /* of the first occurrence; see places.h */
	uint32_t custom; /* KIND_CUSTOM: index + 1 of what the plug-in said; symptoms: which one;
			    torn-store: enum raw_torn */
	uint32_t commit; /* cross-failure-semantic: the commit's store */
	uint8_t stale;   /* … is newer than the data, by more than one */
	uint8_t uninitialised; /* cross-failure-race: `other` allocated the bytes */
	uint32_t within;       /* torn-store: how far behind the start of the store it is read */
	uint8_t why;           /* cross-failure-race: enum history_reason, or 0 */
	uint32_t lost;         /* … of this part + 1 of the history; while it runs */
	uint32_t flush;        /* … and where its line is written back, or 0 */
	uint32_t suspect[RAW_SUSPECTS]; /* crash-symptom: further stores that may be missing */
	uint32_t race;                  /* thread-race: enum races_trait */
	uint32_t witness;               /* index + 1 of the command's table, or 0 */
	uint32_t recovery;              /* the input of the recovery, index + 1 */
	uint32_t input;                 /* explore: index + 1 of the input that shows it, or 0 */
	uint32_t paths;                 /* … which had so many before it */
	uint32_t more[RAW_INPUTS];      /* … further ones, in case */
	uint32_t confirmed;             /* … and it was seen again when that was run once more */
	uint32_t folded; /* other stacks were counted here because the table was full */
};

struct raw_table {
	uint32_t lock;
	uint32_t used[KIND_COUNT];
	uint32_t last[KIND_COUNT]; /* the newest entry of each kind */
	uint32_t entries;
	uint32_t *slot;
	struct raw_finding *entry; /* entry 0 is never used */
};

/* Is told of each new entry, if there is anybody; the table is locked. */
typedef void raw_new_function(struct raw_finding *finding);
extern raw_new_function *raw_on_new;
/* The same of one that is known; false: this is not to be counted. */
typedef bool raw_known_function(struct raw_finding *finding);
extern raw_known_function *raw_on_known;

/*
 * Counts an occurrence. `finding->count` is ignored; event 0 stands for an event of its own. The
 * number of its entry; 0 if it was folded into another one.
 */
uint32_t raw_add(struct raw_table *table, const struct raw_finding *finding, uint32_t owner);

#endif
