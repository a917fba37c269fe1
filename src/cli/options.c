/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/options.h"

#include "cli/options_crash.h"
#include "cli/options_explore.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "drive/check.h"
#include "drive/plugins.h"
#include "report/types.h"

/* ---- what each option does ---- */

/* Returns null, or what is wrong with the value. */
typedef const char *(*set_fn)(struct options *options, const char *value);

static const char *add_name(const char *value, char (*names)[SESSION_PATH], uint32_t *count)
{
	if (*count == SESSION_GLOBS)
		return "too many of them";
	if (!*value || strlen(value) >= SESSION_PATH)
		return "must be a name, and not too long";
	strcpy(names[(*count)++], value);
	return NULL;
}

const char *options_add_file(const char *value, const char **files, unsigned *count)
{
	if (*count == OPTIONS_FILES)
		return "too many of them";
	files[(*count)++] = value;
	return NULL;
}

static const char *set_pm(struct options *options, const char *value)
{
	return add_name(value, options->session.glob, &options->session.globs);
}

static const char *set_pm_heap(struct options *options, const char *value)
{
	(void)value;
	options->session.heap = true;
	return NULL;
}

static const char *set_model(struct options *options, const char *value)
{
	if (strcmp(value, "px86") == 0)
		options->session.model = LINES_PX86;
	else if (strcmp(value, "eadr") == 0)
		options->session.model = LINES_EADR;
	else
		return "must be px86 or eadr";
	return NULL;
}

static const char *switch_kind(struct options *options, const char *value, bool on)
{
	enum finding_kind kind = kind_by_name(value);
	const char *names[KIND_COUNT + 1] = { 0 };
	static char text[128];
	const char *better;

	if (strcmp(value, "all") == 0) {
		options->session.enabled = on ? (1u << KIND_COUNT) - 1 : 0;
		return NULL;
	}
	if (kind < KIND_COUNT) {
		options->session.enabled &= ~(1u << kind);
		options->session.enabled |= (uint32_t)on << kind;
		return NULL;
	}
	for (int i = 0; i < KIND_COUNT; i++)
		names[i] = kind_info(i)->name;
	better = options_suggest(value, names);
	snprintf(text, sizeof(text), "is no kind of finding%s%s%s", better ? "; did you mean " : "",
		 better ? better : "", better ? "?" : "");
	return text;
}

static const char *set_enable(struct options *options, const char *value)
{
	return switch_kind(options, value, true);
}

static const char *set_disable(struct options *options, const char *value)
{
	return switch_kind(options, value, false);
}

static const char *set_lib_model(struct options *options, const char *value)
{
	return options_add_file(value, options->lib_model, &options->lib_models);
}

static const char *set_trust_lib(struct options *options, const char *value)
{
	if (strcmp(value, "none") == 0) {
		options->session.trusts_none = true;
		return NULL;
	}
	return add_name(value, options->session.trusted_glob, &options->session.trusted);
}

static const char *set_patch(struct options *options, const char *value)
{
	return add_name(value, options->session.patch_glob, &options->session.patch);
}

static const char *set_no_patch(struct options *options, const char *value)
{
	return add_name(value, options->session.no_patch_glob, &options->session.no_patch);
}

static const char *set_pm_at(struct options *options, const char *value)
{
	char *end;
	unsigned long address = strtoul(value, &end, 16);
	unsigned long index = address >> PERDURE_WINDOW_SHIFT;

	if (!*value || *end || !address || index > 127)
		return "not an address that a program can map something at";
	options->session.second_window = (uint8_t)(index + 1);
	return NULL;
}

static const char *set_tx_only(struct options *options, const char *value)
{
	const char *name = types_bare_name(value);
	char *bare = strndup(name, strcspn(name, "<")); /* templates are known without arguments */
	const char *wrong;

	if (!bare)
		abort();
	wrong = add_name(bare, options->session.tx_only_name, &options->session.tx_only);
	free(bare);
	return wrong;
}

static const char *set_plugin(struct options *options, const char *value)
{
	static char error[512];

	options->plugins = true;
	return plugins_load(value, error, sizeof(error)) < 0 ? error : NULL;
}

static const char *set_sarif(struct options *options, const char *value)
{
	options->sarif = value;
	return NULL;
}

static const char *set_junit(struct options *options, const char *value)
{
	options->junit = value;
	return NULL;
}

static const char *set_suppress(struct options *options, const char *value)
{
	return options_add_file(value, options->suppress, &options->suppressions);
}

static const char *set_gen_suppressions(struct options *options, const char *value)
{
	options->gen_suppressions = value ? value : "-";
	return NULL;
}

static const char *set_baseline(struct options *options, const char *value)
{
	options->baseline = value;
	return NULL;
}

static const char *set_json(struct options *options, const char *value)
{
	options->json = value;
	return NULL;
}

static const char *set_html(struct options *options, const char *value)
{
	options->html = value;
	return NULL;
}

static const char *set_trace(struct options *options, const char *value)
{
	options->trace = value;
	return NULL;
}

const char *options_parse_long(const char *value, long low, long high, long *result)
{
	static char wrong[96];
	char *end;

	errno = 0;
	*result = strtol(value, &end, 10);
	if (errno || end == value || *end || *result < low || *result > high)
		snprintf(wrong, sizeof(wrong), "must be a whole number from %ld to %ld", low, high);
	else
		return NULL;
	return wrong;
}

static const char *set_timeout(struct options *options, const char *value)
{
	return options_parse_long(value, 1, 1000000, &options->timeout);
}

static const char *set_max_memory(struct options *options, const char *value)
{
	return options_parse_long(value, 1, 1 << 30, &options->max_memory);
}

static const char *set_max_time(struct options *options, const char *value)
{
	char *end;

	options->max_time = strtod(value, &end);
	return end == value || *end || !(options->max_time > 0) ? "must be a number of seconds"
								: NULL;
}

static const char *set_error_status(struct options *options, const char *value)
{
	long status;
	const char *wrong = options_parse_long(value, 1, 255, &status);

	options->error_status = status;
	return wrong;
}

static const char *set_quiet(struct options *options, const char *value)
{
	(void)value;
	options->quiet = true;
	return NULL;
}

static const char *set_stats(struct options *options, const char *value)
{
	(void)value;
	options->stats = true;
	return NULL;
}

static const char *set_help(struct options *options, const char *value)
{
	(void)value;
	options->help = true;
	return NULL;
}

/* ---- of check ---- */

static const char *set_jobs(struct options *options, const char *value)
{
	return options_parse_long(value, 1, 64, &options->jobs);
}

static const char *set_detector(struct options *options, const char *value)
{
	options->races.detectors = strcmp(value, "pifr") == 0   ? RACES_PIFR
				   : strcmp(value, "hb") == 0   ? RACES_HB
				   : strcmp(value, "both") == 0 ? RACES_PIFR | RACES_HB
								: 0;
	return options->races.detectors ? NULL : "must be pifr, hb or both";
}

static const char *set_runs(struct options *options, const char *value)
{
	return options_parse_long(value, 1, 1000000, &options->runs);
}

static const char *set_sample(struct options *options, const char *value)
{
	long n;

	if (strncmp(value, "1/", 2) != 0 || options_parse_long(value + 2, 1, 1000000, &n))
		return "must be 1/N";
	options->races.sample = (uint32_t)n;
	return NULL;
}

static const char *set_delay(struct options *options, const char *value)
{
	char *end;
	double ms = strtod(value, &end);

	if (!*value || *end || !(ms >= 0 && ms <= 100000))
		return "must be a number of milliseconds";
	options->races.delay = (uint32_t)(ms * 1000);
	return NULL;
}

static const char *set_decay(struct options *options, const char *value)
{
	long n;
	const char *wrong = options_parse_long(value, 0, 100, &n);

	options->races.decay = wrong ? 0 : (uint32_t)n;
	return wrong;
}

static const char *set_minimal(struct options *options, const char *value)
{
	(void)value;
	options->races.minimal = true;
	return NULL;
}

static const char *set_flush_on_read(struct options *options, const char *value)
{
	(void)value;
	options->races.helpers = true;
	return NULL;
}

static const char *set_acquire(struct options *options, const char *value)
{
	return options_add_file(value, options->acquire, &options->acquires);
}

static const char *set_release(struct options *options, const char *value)
{
	return options_add_file(value, options->release, &options->releases);
}

static const char *set_dump_regions(struct options *options, const char *value)
{
	options->dump_regions = value ? value : "-";
	options->races.dumps = true;
	return NULL;
}

static const char *set_check_recovery(struct options *options, const char *value)
{
	(void)value;
	options->check_recovery = true;
	return NULL;
}

/* ---- the table ---- */

enum {
	CRASH = OPTIONS_CHECK | OPTIONS_MODEL,
	THREADS = OPTIONS_THREADS,
	EXPLORE = OPTIONS_EXPLORE,
	ALL = OPTIONS_RUN | CRASH | THREADS | EXPLORE,
	SAME = ALL | OPTIONS_AGAIN,
};

static const struct option {
	const char *name;
	const char *value; /* what its value is called; null: it has none */
	set_fn set;
	const char *help;
	unsigned commands; /* enum options_command */
} table[] = {
	{ "--pm", "GLOB", set_pm,
	  "files that are persistent memory, by the path given to open or the absolute one; may be "
	  "repeated (DAX files and what libpmem maps are PM anyway)",
	  SAME },
	{ "--pm-heap", NULL, set_pm_heap, "the program's heap is persistent memory", SAME },
	{ "--model", "M", set_model, "px86 (default) or eadr: caches are persistent", SAME },
	{ "--enable", "KIND", set_enable, "also report this kind of finding, or all", SAME },
	{ "--disable", "KIND", set_disable, "do not report this kind of finding, or all", SAME },
	{ "--lib-model", "FILE", set_lib_model,
	  "what the functions of a library do (docs/models.md); may be repeated", SAME },
	{ "--trust-lib", "GLOB", set_trust_lib,
	  "do not judge what libraries of this name do; none: also judge how fast prebuilt PMDK is",
	  SAME },
	{ "--patch", "GLOB", set_patch,
	  "in a program that was not built with perdure-cc: follow libraries of this name as well",
	  SAME },
	{ "--no-patch", "GLOB", set_no_patch,
	  "the same: do not follow libraries of this name (docs/binary.md)", SAME },
	{ "--pm-at", "ADDRESS", set_pm_at,
	  "the same: where it maps PM with MAP_FIXED, if that is not found out in time", SAME },
	{ "--tx-only", "STRUCT", set_tx_only,
	  "a structure that may only be changed in a transaction that has logged it", SAME },
	{ "--plugin", "SO", set_plugin, "a checker of your own (docs/plugins.md); may be repeated",
	  SAME },
	{ "--suppress", "FILE", set_suppress,
	  "leave out the findings that this file describes; may be repeated", ALL },
	{ "--gen-suppressions", "[=FILE]", set_gen_suppressions,
	  "write blocks for --suppress, one a finding, to FILE or standard output", ALL },
	{ "--baseline", "FILE", set_baseline,
	  "an earlier JSON result: only findings that are new count", ALL },
	{ "--json", "FILE", set_json,
	  "write the result as JSON (- is standard output, %p becomes the process number)", ALL },
	{ "--sarif", "FILE", set_sarif, "the same as SARIF 2.1.0, for code-scanning services",
	  ALL },
	{ "--html", "FILE", set_html, "the same as one HTML file, for a browser", ALL },
	{ "--junit", "FILE", set_junit, "the same as JUnit XML, one test case a cause", ALL },
	{ "--trace", "FILE", set_trace, "write every event on PM, as text", ALL },
	{ "--recover", "CMD", crash_set_recover,
	  "what to run after a crash; otherwise the program, with the same arguments",
	  CRASH | THREADS | EXPLORE | OPTIONS_AGAIN_CRASH },
	{ "--checker", "CMD", crash_set_checker,
	  "run this on the image that a crash leaves, instead of a recovery: status 0 says that it is "
	  "consistent; if it does not name the PM file, that comes last, as pmreorder does it",
	  CRASH },
	{ "--bad-exit", "LIST", crash_set_bad_exit,
	  "exit statuses that mean that a recovery failed: 1,3-5, or nonzero",
	  CRASH | EXPLORE | OPTIONS_AGAIN_CRASH },
	{ "--drive", "CMD", crash_set_drive,
	  "a shell command to run when the program listens on a socket; then the program is ended",
	  CRASH | THREADS | OPTIONS_RUN },
	{ "--drive-recover", "CMD", crash_set_drive_recover, "the same for recoveries", CRASH },
	{ "--jobs", "N", set_jobs, "recoveries, or paths, at a time (default: one for each core)",
	  CRASH | EXPLORE },
	{ "--max-crash-points", "N", crash_set_max_crash_points,
	  "examine only N crash points, evenly spread", CRASH | EXPLORE },
	{ "--schedule", "HOW", crash_set_schedule,
	  "who runs when, of several threads: det (default: they take turns at every "
	  "synchronisation), random, pct (random priorities), all (for tiny programs), or what a "
	  "report says",
	  CRASH | EXPLORE },
	{ "--store-log", "FILE", crash_set_store_log,
	  "write what the run did to PM as pmemcheck's store log, which pmreorder reads", CRASH },
	{ "--only-crash", "N", crash_set_only_crash, NULL, CRASH },
	{ "--image", "FILE", crash_set_image, NULL, CRASH },
	{ "--image-latest", NULL, crash_set_image_latest, NULL, CRASH },
	{ "--schedules", "K", crash_set_schedules,
	  "so many schedules (default: 1; all: all of them)", CRASH },
	{ "--seed", "N", crash_set_seed,
	  "of the first random schedule, of delays, or of --search random (default: 0)",
	  CRASH | THREADS | EXPLORE },
	{ "--preemptions", "N", crash_set_preemptions,
	  "--schedule all: a thread that could go on is interrupted at most so often (default: 2)",
	  CRASH | EXPLORE },
	{ "--strict-commit", NULL, crash_set_strict,
	  "report also reads of atomic stores that may be missing",
	  CRASH | EXPLORE | OPTIONS_AGAIN_CRASH },
	{ "--volatile", "HOW", crash_set_volatile,
	  "volatile stores are atomic (default) or plain: whether a recovery may read them",
	  CRASH | EXPLORE | OPTIONS_AGAIN_CRASH },
	{ "--verifier", "FUNC", crash_set_verifier,
	  "a function that validates data before a recovery uses it, such as by a checksum; may be "
	  "repeated",
	  CRASH | EXPLORE | OPTIONS_AGAIN_CRASH },
	{ "--prefix", "HOW", crash_set_prefix,
	  "torn stores are looked for in all runs that look the same to a recovery (on, default), or "
	  "only in the one that was (off)",
	  CRASH },
	{ "--keep", NULL, crash_set_keep, "leave PM files as the run before the crash left them",
	  CRASH },
	{ "--random", "N", crash_set_random,
	  "only N recoveries, whose values are chosen by chance (--seed), at crash points evenly",
	  OPTIONS_MODEL },
	{ "--crashes", "N", crash_set_crashes,
	  "recoveries crash as well: up to N crashes, one after the other (default: 1)",
	  OPTIONS_MODEL },
	{ "--stop-on-first", NULL, crash_set_stop_on_first,
	  "end with the first recovery that fails", OPTIONS_MODEL },
	{ "--chunk-order", "HOW", crash_set_chunk_order,
	  "stores of more than 8 bytes become persistent in pieces: ascending (default), or any: "
	  "descending, too",
	  OPTIONS_MODEL },
	{ "--resume", "DIR", crash_set_resume,
	  "keep in DIR what is done, and go on from there: after an interruption, nothing is done twice",
	  OPTIONS_MODEL },
	{ "--detector", "HOW", set_detector,
	  "pifr (default: regions around the accesses were open at the same time), hb (nothing says "
	  "that the load comes after the persist), or both",
	  THREADS },
	{ "--runs", "K", set_runs,
	  "so many runs, after the first one, which only learns (default: 1)", THREADS },
	{ "--sample", "1/N", set_sample, "watch for one Nth of the time", THREADS },
	{ "--delay", "MS", set_delay, "wait so many milliseconds before regions end", THREADS },
	{ "--decay", "P", set_decay,
	  "a delay during which nothing was found makes the next ones less likely, by P per cent",
	  THREADS },
	{ "--minimal-regions", NULL, set_minimal,
	  "regions are not larger than their accesses, and end when a store is persistent",
	  THREADS },
	{ "--flush-on-read", NULL, set_flush_on_read,
	  "threads write back what others have stored before they rely on it: that is good, too",
	  THREADS },
	{ "--acquire", "NAME", set_acquire,
	  "a function of the program that takes a lock of its own kind; with wildcards, as C++ names "
	  "read; may be repeated",
	  THREADS },
	{ "--release", "NAME", set_release, "the same for one that gives it back", THREADS },
	{ "--dump-regions", "[=FILE]", set_dump_regions,
	  "write where regions start; as a graph if FILE ends in .dot", THREADS },
	{ "--check-recovery", NULL, set_check_recovery,
	  "run perdure check, too, and mark races whose store recoveries do without (--recover)",
	  THREADS },
	{ "--sym-args", "N[xLEN]", explore_set_arguments,
	  "N more arguments, of up to LEN characters (default: 8), that may be anything",
	  EXPLORE | OPTIONS_SYMBOLIC },
	{ "--sym-stdin", "N", explore_set_stdin, "standard input has N bytes that may be anything",
	  EXPLORE | OPTIONS_SYMBOLIC },
	{ "--sym-file", "PATH=N", explore_set_file, "the same for a file, which may be PM",
	  EXPLORE | OPTIONS_SYMBOLIC },
	{ "--sym-env", "NAME=N", explore_set_variable, "the same for a variable of the environment",
	  EXPLORE | OPTIONS_SYMBOLIC },
	{ "--sym-socket", "N", explore_set_socket,
	  "a client sends the program, a server, N bytes that may be anything",
	  EXPLORE | OPTIONS_SYMBOLIC },
	{ "--sym-packet", "TEXT", explore_set_packet,
	  "a client sends this, in which each ? may be anything (\\? \\r \\n \\xHH and so on); several are "
	  "sent one after the other",
	  EXPLORE | OPTIONS_SYMBOLIC },
	{ "--search", "HOW", explore_set_search,
	  "which path goes on: pm (default: where most of PM can be changed), coverage, dfs, bfs, "
	  "random",
	  EXPLORE },
	{ "--crash", NULL, explore_set_crash,
	  "crash every path that does something else to PM, everywhere, as perdure check does",
	  EXPLORE },
	{ "--sym-recover", NULL, explore_set_sym_recover,
	  "--crash: recoveries have symbolic inputs, too: those named behind this, or the same ones",
	  EXPLORE },
	{ "--paths-to", "FILE", explore_set_paths, NULL, EXPLORE },
	{ "--coverage", "FILE", explore_set_coverage,
	  "write which instructions that change PM were reached, and which branches kept the search "
	  "from the others (- is standard output)",
	  EXPLORE },
	{ "--max-states", "N", explore_set_states,
	  "at most N paths wait at a time; others are left out", EXPLORE },
	{ "--solver-timeout", "MS", explore_set_solver_time,
	  "how long one question may take (default: 2000)", EXPLORE },
	{ "--inputs", "DIR", explore_set_inputs,
	  "where inputs are kept, one a finding (default: perdure-inputs); none: nowhere",
	  EXPLORE },
	{ "--show-output", NULL, explore_set_shows, "show what paths print", EXPLORE },
	{ "--no-memo", NULL, crash_set_no_memo,
	  "run every recovery, also those that are known to do the same as an earlier one", CRASH },
	{ "--timeout", "S", set_timeout,
	  "end the program, or a recovery, after S seconds of CPU time (recoveries: 10)", ALL },
	{ "--max-time", "S", set_max_time, "end everything after S seconds", ALL },
	{ "--max-memory", "M", set_max_memory, "end a program that uses more than M MiB", ALL },
	{ "--error-exitcode", "N", set_error_status, "exit with N, not 1, when there are findings",
	  ALL },
	{ "--quiet", NULL, set_quiet, "no report on standard error", ALL },
	{ "--stats", NULL, set_stats, "print counters", ALL },
	{ "--help", NULL, set_help, "show this text", ALL },
};
enum { OPTIONS = sizeof(table) / sizeof(*table) };

void options_each(unsigned commands, void (*each)(const struct option_info *option, void *context),
		  void *context)
{
	for (int i = 0; i < OPTIONS; i++)
		if (table[i].commands & commands && table[i].help)
			each(&(struct option_info){ table[i].name, table[i].value, table[i].help },
			     context);
}

void options_help(FILE *out, unsigned commands)
{
	for (int i = 0; i < OPTIONS; i++) {
		const char *value = table[i].value ? table[i].value : "";
		int width;

		if (!(table[i].commands & commands) || !table[i].help)
			continue;
		width = fprintf(out, "  %s%s%s", table[i].name, *value && *value != '[' ? " " : "",
				value);

		fprintf(out, "%*s%s\n", width < 25 ? 25 - width : 1, "", table[i].help);
	}
}

/* ---- parsing ---- */

static int unknown_option(const char *word)
{
	const char *names[OPTIONS + 1] = { 0 }, *better;

	for (int i = 0; i < OPTIONS; i++)
		names[i] = table[i].name;
	better = options_suggest(word, names);
	fprintf(stderr, "perdure: unknown option %s%s%s%s (perdure --help lists them)\n", word,
		better ? "; did you mean " : "", better ? better : "", better ? "?" : "");
	return 2;
}

/* One option at words[*at]; "--name value" and "--name=value" both work. */
/* One that has it. */
static const char *command_of(unsigned commands)
{
	return commands & OPTIONS_CHECK     ? "check"
	       : commands & OPTIONS_MODEL   ? "model"
	       : commands & OPTIONS_THREADS ? "threads"
	       : commands & OPTIONS_EXPLORE ? "explore"
					    : "run";
}

/* Says where something is written, or how much is said, and not what is done. */
static bool is_output(const char *name)
{
	static const char *const names[] = {
		"--json",           "--sarif",      "--html",     "--junit",
		"--trace",          "--quiet",      "--stats",    "--gen-suppressions",
		"--baseline",       "--inputs",     "--coverage", "--resume",
		"--error-exitcode", "--only-crash", "--image",    "--image-latest",
		"--store-log"
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static int parse_option(struct options *options, char **words, int *at, unsigned command)
{
	char *word = words[*at], *equals = strchr(word, '=');
	int first = *at;
	const char *value = NULL, *wrong;
	size_t length = equals ? (size_t)(equals - word) : strlen(word);

	for (int i = 0; i < OPTIONS; i++) {
		if (strlen(table[i].name) != length || strncmp(table[i].name, word, length) != 0)
			continue;
		if (equals && !table[i].value) {
			fprintf(stderr, "perdure: %s takes no value\n", table[i].name);
			return 2;
		}
		if (table[i].value && table[i].value[0] == '[') {
			value = equals ? equals + 1 : NULL;
		} else if (table[i].value) {
			value = equals ? equals + 1 : words[++*at];
			if (!value) {
				fprintf(stderr, "perdure: %s needs a value: %s %s\n", table[i].name,
					table[i].name, table[i].value);
				return 2;
			}
		}
		if (!(table[i].commands & command)) {
			fprintf(stderr, "perdure: %s is an option of perdure %s\n", table[i].name,
				command_of(table[i].commands));
			return 2;
		}
		wrong = table[i].set(options, value);
		for (int word = first; !is_output(table[i].name) && word <= *at; word++)
			if (options->kepts < 4 * OPTIONS_FILES)
				options->kept[options->kepts++] = words[word];
		for (; table[i].commands & OPTIONS_AGAIN && first <= *at; first++)
			if (options->agains < OPTIONS_FILES)
				options->again[options->agains++] = words[first];
		for (int word = first; table[i].commands & OPTIONS_SYMBOLIC && word <= *at; word++)
			if (options->symbolics < OPTIONS_FILES)
				options->symbolic[options->symbolics++] = words[word];
		for (; table[i].commands & OPTIONS_AGAIN_CRASH && first <= *at; first++)
			if (options->agains_crash < OPTIONS_FILES)
				options->again_crash[options->agains_crash++] = words[first];
		if (wrong)
			fprintf(stderr, "perdure: %s %s: %s\n", table[i].name, value, wrong);
		return wrong ? 2 : 0;
	}
	if (equals)
		*equals = 0;
	return unknown_option(word);
}

int options_parse(struct options *options, char **words, unsigned command)
{
	int at = 0;

	*options =
		(struct options){ .session.enabled = kinds_default(), .schedules.preemptions = 2 };
	for (; words[at] && words[at][0] == '-' && words[at][1]; at++) {
		if (strcmp(words[at], "--") == 0) {
			at++;
			break;
		}
		if (parse_option(options, words, &at, command))
			return 2;
	}
	options->command = words + at;
	options->explores = command & OPTIONS_EXPLORE;
	if (options->session.model == LINES_EADR)
		for (int kind = 0; kind < KIND_COUNT; kind++)
			if (!kind_info(kind)->in_eadr)
				options->session.enabled &= ~(1u << kind);
	if (!(command & OPTIONS_NO_PROGRAM) && !options->help && !words[at]) {
		fprintf(stderr, "perdure: which program? perdure %s [options] [--] PROG [ARGS]\n",
			command & OPTIONS_EXPLORE   ? "explore"
			: command & OPTIONS_THREADS ? "threads"
			: command & OPTIONS_MODEL   ? "model"
			: command & OPTIONS_CHECK   ? "check"
						    : "run");
		return 2;
	}
	return 0;
}
