/* SPDX-License-Identifier: BSD-3-Clause */
/* Findings as people see them: named, merged, ranked. What every report writer works from. */
#ifndef REPORT_FINDING_H
#define REPORT_FINDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "session/session.h"

struct frame_info {
	char *file; /* relative to the current directory where it lies below; null if unknown */
	char *path; /* absolute */
	char *function;
	char *module;
	unsigned line, column;
	uint64_t offset; /* in the module */
};

struct site {
	const char *role;
	uint32_t thread;          /* 0: not known */
	struct frame_info *frame; /* innermost first */
	unsigned frames;
	unsigned shown; /* the frame where it is shown: the innermost one in the user's source */
};

/* The frame where the site is shown; null if nothing is known. */
static inline const struct frame_info *site_shown(const struct site *site)
{
	return site->frames ? &site->frame[site->shown] : NULL;
}

enum { FINDING_CRASHES = 4 };
enum { FINDING_SITES = 10 + EXECUTION_DEADLOCKED }; /* as many as CHECK_MISSING, and others */

struct check;
struct check_witness;

struct finding {
	char id[24];
	enum finding_kind kind;
	char *message;
	char *detail; /* what the second site is, for the text report; may be null */
	struct site site[FINDING_SITES];
	unsigned waits; /* the last ones of them: threads in a deadlock */
	unsigned sites;
	uint64_t address, size;
	char *map; /* path of the PM file, or "heap"; null where there is no address */
	uint64_t offset;
	char *field; /* the lvalue as the source has it, or null */
	uint64_t count;
	bool folded;
	uint64_t fingerprint;
	const char *member, *structure,
		*declared; /* torn-store: as in value, struct pair, pair.h */
	bool benign;       /* torn-store: only code that verifies data reads it */
	char *fix;         /* null where none is certain */
	struct {
		const char *what; /* persist, fence, log, atomic; null: people have to do it */
		const char *file;
		unsigned line;
	} edit; /* the same, for perdure fix */
	unsigned cause;
	uint64_t cause_fingerprint;
	bool correctness;   /* otherwise performance */
	const char *oracle; /* the plug-in that found it; null for the kinds of Perdure */
	bool suppressed;    /* a --suppress file describes it */
	bool known;         /* its cause is in the --baseline */
	const struct explore_kept *input;          /* explore: one that shows it */
	const struct explore_kept *recovery_input; /* … if the recovery is given this */
	uint32_t paths;                            /* … and how many were complete before */
	bool unconfirmed; /* … but it was not there when that was run again */
	uint32_t race;    /* thread-race: enum races_trait */
	bool repaired;    /* … and recoveries do without its store */
	bool weak;        /* says less than others of its kind: ranks behind them */
	const struct check_witness *witness; /* the crash that showed it; null: none was needed */
	struct site crash;                   /* where the program was then */
	struct site
		further[FINDING_CRASHES]; /* where recoveries were when they crashed, last first */
	struct site flush; /* what writes the lost store back, without success; or empty */
};

/* Does it count: neither suppressed, nor known, nor in doubt? */
static inline bool finding_counts(const struct finding *f)
{
	return !f->suppressed && !f->known && !f->unconfirmed;
}

static inline const char *finding_severity(const struct finding *f)
{
	return f->correctness ? "correctness" : "performance";
}

enum { RESULT_ORACLES = 64 };

/* A result: everything a report needs. */
struct result {
	const char *engine;
	char **command;
	bool complete;
	char **limits;
	size_t limit_count;
	int exit_status;         /* of the target; -1 if it died by a signal */
	int signal;              /* 0 if it exited */
	struct finding *finding; /* ranked */
	size_t findings;
	unsigned causes;
	struct finding *benign; /* no findings: what would be one, were it not verified */
	size_t benigns;
	bool has_baseline;
	uint32_t enabled; /* bit set of kinds */
	struct result_oracle {
		const char *name, *help;
	} oracle[RESULT_ORACLES]; /* plug-ins */
	unsigned oracles;
	uint64_t loads, stores, flushes, fences;
	unsigned threads;
	uint32_t sites, patched, redirected; /* of code that was not built with perdure-cc */
	uint64_t unwound;                    /* stacks there that took unwind tables */
	uint64_t session_bytes;              /* memory that the analysis itself took */
	double seconds;
	char **missed; /* "file:line" of what recoveries miss, null at the end; null: not known */
	const struct session_races *races; /* null: threads were not watched */
	const struct check *check;         /* null: there were no crashes */
	const struct explore *explore;     /* null: inputs were not symbolic */
	struct coverage *coverage;         /* explore: of instructions that change PM; or null */
	uint32_t given;                    /* explore --crash: so many paths were crashed … */
	struct json_t *explored;           /* … and this was written about all of them */
	const struct session *session;     /* what it was collected from */
	/* Looks at the findings before they are written; or null. */
	void (*review)(struct result *result, void *context);
	void *review_context;
	const char *inputs;   /* where inputs are kept, or null */
	char *const *options; /* of the command line, for one who wants to see it again; or null */
	const char *directory, *json; /* where it was run, and where the JSON result is; or null */
};

/* Reads the session into result->finding, …->limits and the counters. */
void result_collect(struct result *result, struct session *session);

/* How the finding is seen again, as a command; false if nobody knows. */
bool finding_again(const struct finding *f, const struct result *result, char *text, size_t size);

/* Adds a line to the limits; the text is copied. */
void result_limit(struct result *result, const char *text);

#endif
