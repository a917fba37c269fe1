/* SPDX-License-Identifier: BSD-3-Clause */
/* The one table of options: parsing, help and suggestions come from it. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>

#include "drive/schedules.h"
#include "session/session.h"

enum { OPTIONS_FILES = 64 };

/* Which commands an option is for. */
enum options_command {
	OPTIONS_RUN = 1,
	OPTIONS_CHECK = 2,
	OPTIONS_NO_PROGRAM = 4,
	OPTIONS_MODEL = 8,
	OPTIONS_THREADS = 16,
	OPTIONS_EXPLORE = 32,
	OPTIONS_AGAIN = 64,        /* a run that shows the same needs it as well */
	OPTIONS_AGAIN_CRASH = 128, /* … if it crashes the program */
	OPTIONS_SYMBOLIC = 256,    /* says what is symbolic */
};

struct options {
	struct session_options session; /* what the target's runtime needs */
	const char *json, *sarif, *junit;
	const char *trace;
	const char *baseline;
	const char *lib_model[OPTIONS_FILES], *suppress[OPTIONS_FILES];
	const char *verifier[OPTIONS_FILES];
	unsigned lib_models, suppressions, verifiers;
	const char *gen_suppressions; /* a file, "-" for standard output; null: none */
	bool plugins;                 /* some are loaded */
	double max_time;              /* seconds of wall time, 0: none */
	long timeout;                 /* CPU seconds of one execution, 0: none */
	long max_memory;              /* MiB, 0: none */
	int error_status;             /* --error-exitcode, 0: none */
	bool quiet, stats, help;
	char **command; /* the program and its arguments, null-terminated */

	/* check */
	char **recover, **checker;
	const char *recover_text; /* as it was given */
	const char *drive, *drive_recover;
	long jobs, max_crash_points; /* 0: as many as there are cores, all */
	struct schedules schedules;
	bool bad_exit[256];
	bool strict, plain_volatile, keep, no_memo, no_prefix;

	/* model */
	long random;  /* 0: all */
	long crashes; /* 0: one */
	bool stop_on_first;
	bool any_chunk_order;
	const char *resume; /* directory, or null */

	/* threads */
	struct races_settings races;
	long runs; /* 0: one */
	bool check_recovery;
	const char *acquire[OPTIONS_FILES], *release[OPTIONS_FILES];
	unsigned acquires, releases;
	const char *dump_regions; /* a file, "-" for standard output; null: none */

	/* explore */
	bool explores;
	char *again[OPTIONS_FILES + 1]; /* words for a run that shows the same */
	unsigned agains;
	char *again_crash[OPTIONS_FILES + 1];
	unsigned agains_crash;
	bool crash;       /* explore: crash injection on all paths */
	bool sym_recover; /* … and recoveries have symbolic inputs, too: */
	char *symbolic[OPTIONS_FILES + 1];
	unsigned symbolics, program_symbolics; /* so many are the program's */
	const char *paths;                     /* hidden: where inputs of all paths are appended */
	const char *coverage; /* … where to write which instructions were reached */
	struct explore_settings explore;
	const char *inputs; /* directory; null: the default, "none": none */
	const char *html, *store_log;
	char *kept[4 * OPTIONS_FILES +
		   1]; /* words that say what is done, not where it is written */
	unsigned kepts;
	uint32_t only_crash; /* hidden: the event + 1 that a replay is about; 0: all */
	const char *image;   /* hidden: where the image of that crash goes */
	bool image_latest;
};

struct option_info {
	const char *name, *value, *help; /* value: null if it has none */
};

/* One more of a list that may have OPTIONS_FILES; what is wrong, or null. */
const char *options_add_file(const char *value, const char **files, unsigned *count);

/* Calls the function with each option of the commands. */
void options_each(unsigned commands, void (*each)(const struct option_info *option, void *context),
		  void *context);

/*
 * Parses the words after the subcommand. Returns 0, or 2 with a message on standard error. A
 * program must follow, unless OPTIONS_NO_PROGRAM says so.
 */
int options_parse(struct options *options, char **words, unsigned command);

/*
 * Splits a string like PERDURE_OPTIONS into words, shell-like quotes respected. Allocated; null if
 * a quote is not closed.
 */
char **options_split(const char *text);

/* Those of the commands in this set. */
void options_help(FILE *out, unsigned commands);

/* A whole number in a range. Null, or what is wrong. */
const char *options_parse_long(const char *value, long low, long high, long *result);

/* The best match for a misspelt word among a null-terminated list, or null. */
const char *options_suggest(const char *word, const char *const *candidates);

#endif
