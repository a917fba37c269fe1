/* SPDX-License-Identifier: BSD-3-Clause */
/* perdure fix: the changes that cure findings, as a diff; or made, built and tried. */
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/again.h"
#include "cli/commands.h"
#include "report/repair.h"

enum { FILES = 256 };

struct request {
	const char *result, *build;
	bool applies;
	char **ids; /* null: all of them */
};

struct changes {
	struct {
		char *path;
		struct repair_file *file;
	} file[FILES];
	unsigned files, edits, left;
};

static struct repair_file *open_file(struct changes *changes, const char *path)
{
	struct repair_file *file;

	for (unsigned i = 0; i < changes->files; i++)
		if (strcmp(changes->file[i].path, path) == 0)
			return changes->file[i].file;
	file = changes->files < FILES ? repair_open(path) : NULL;
	if (!file) {
		fprintf(stderr, "perdure: cannot read %s: %s\n", path, strerror(errno));
		return NULL;
	}
	changes->file[changes->files].path = strdup(path);
	changes->file[changes->files++].file = file;
	return file;
}

/* The place that it is about may have another name for what is stored to than the finding. */
static const char *lvalue_of(const json_t *finding, const json_t *edit)
{
	const json_t *site = json_array_get(json_object_get(finding, "sites"), 0);
	const char *file = again_text(site, "file");

	if (!file || strcmp(file, again_text(edit, "file")) != 0 ||
	    json_integer_value(json_object_get(site, "line")) !=
		    json_integer_value(json_object_get(edit, "line")))
		return NULL;
	return again_text(json_object_get(finding, "object"), "field");
}

static void fix_one(struct changes *changes, const json_t *finding)
{
	const json_t *edit = json_object_get(json_object_get(finding, "fix"), "edit");
	struct repair_file *file;
	struct repair_wish wish;
	const char *why;

	if (!json_is_object(edit)) {
		changes->left++;
		return;
	}
	file = open_file(changes, again_text(edit, "file"));
	if (!file)
		return;
	wish = (struct repair_wish){
		.what = again_text(edit, "what"),
		.line = (unsigned)json_integer_value(json_object_get(edit, "line")),
		.text = again_text(edit, "text"),
		.lvalue = lvalue_of(finding, edit),
		.size = (unsigned long)json_integer_value(json_object_get(finding, "size")),
	};
	why = repair_edit(file, &wish);
	if (why) {
		fprintf(stderr, "perdure: %s at %s:%lld: %s\n", again_text(finding, "id"),
			again_text(edit, "file"), json_integer_value(json_object_get(edit, "line")),
			why);
		changes->left++;
	} else {
		changes->edits++;
	}
}

static bool is_wanted(const struct request *request, const json_t *finding)
{
	if (json_is_true(json_object_get(finding, "suppressed")) ||
	    json_is_true(json_object_get(finding, "baseline")) ||
	    json_is_false(json_object_get(finding, "confirmed")))
		return false;
	for (char **id = request->ids; id && *id; id++)
		if (strcmp(*id, again_text(finding, "id")) == 0)
			return true;
	return !request->ids || !*request->ids;
}

/* What is never flushed or fenced is cured first: often nothing else is left then. */
static unsigned turn_of(const json_t *finding)
{
	const char *kind = again_text(finding, "kind");
	const char *what =
		again_text(json_object_get(json_object_get(finding, "fix"), "edit"), "what");

	if (strcmp(kind, "store-outside-tx") == 0)
		return 0; /* the commit writes it back */
	if (strcmp(kind, "torn-store") == 0)
		return 2;
	return (strcmp(kind, "cross-failure-race") == 0 || strcmp(kind, "crash-symptom") == 0) &&
			       !(what && strcmp(what, "fence") == 0)
		       ? 3
		       : 1;
}

static void fix_all(struct changes *changes, const struct request *request, const json_t *result)
{
	const json_t *finding, *findings = json_object_get(result, "findings");
	bool named = request->ids && *request->ids;
	size_t i;

	for (unsigned turn = 0; turn < 4 && (named || turn < 2 || !changes->edits); turn++)
		json_array_foreach(findings, i, finding)
		{
			if (turn_of(finding) == turn && is_wanted(request, finding))
				fix_one(changes, finding);
		}
}

/* Cuts the path to the directory that it is in; false if it is the root. */
static bool go_up(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash || slash == path)
		return false;
	*slash = 0;
	return true;
}

static bool is_below(const char *path, const char *directory)
{
	size_t length = strlen(directory);

	return strncmp(path, directory, length) == 0 && path[length] == '/';
}

/*
 * Tools that apply a diff want names below a directory: that of the repository, or one that has the
 * file and us. `top` is that directory, empty if it is this one.
 */
static const char *name_in_diff(const char *path, char top[PATH_MAX])
{
	char here[PATH_MAX], inside[PATH_MAX + 8];

	*top = 0;
	if (*path != '/' || strlen(path) >= PATH_MAX || !getcwd(here, sizeof(here)))
		return path;
	strcpy(top, path);
	while (go_up(top)) {
		snprintf(inside, sizeof(inside), "%s/.git", top);
		if (access(inside, F_OK) == 0)
			return path + strlen(top) + 1;
	}
	strcpy(top, here);
	while (!is_below(path, top))
		if (!go_up(top)) {
			*top = 0;
			return path;
		}
	if (strcmp(top, here) == 0)
		*top = 0;
	return path + (*top ? strlen(top) : strlen(here)) + 1;
}

static bool print_changes(const struct changes *changes)
{
	char top[PATH_MAX], said[PATH_MAX] = "";
	bool any = false;

	for (unsigned i = 0; i < changes->files; i++) {
		const char *name = name_in_diff(changes->file[i].path, top);

		if (!repair_diff(changes->file[i].file, name, stdout))
			continue;
		any = true;
		if (*top && strcmp(top, said) != 0)
			fprintf(stderr, "perdure: %s is below %s: patch -p1 -d %s\n", name, top,
				top);
		strcpy(said, top);
	}
	fflush(stdout);
	return any;
}

/* ---- trying it ---- */

static bool save_all(const struct changes *changes, bool changed)
{
	bool done = true;

	for (unsigned i = 0; i < changes->files; i++)
		if (!(changed ? repair_save(changes->file[i].file)
			      : repair_undo(changes->file[i].file))) {
			fprintf(stderr, "perdure: cannot write %s: %s\n", changes->file[i].path,
				strerror(errno));
			done = false;
		}
	return done;
}

static json_t *analyse(const json_t *result)
{
	int fd = memfd_create("perdure-result", 0), input = again_input(result);
	struct again again = { 0 };
	json_t *after;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), fd);
	again_begin(&again, result, NULL);
	again_add(&again, "--json");
	again_add(&again, path);
	again_end(&again, result);
	again_run(&again, true, input);
	after = json_load_file(path, 0, NULL);
	close(input);
	close(fd);
	return after;
}

/* Fingerprints do not depend on lines, which have shifted. */
static bool is_known(const json_t *findings, const json_t *finding)
{
	const json_t *other;
	size_t i;

	json_array_foreach(findings, i,
			   other) if (strcmp(again_text(other, "fingerprint"),
					     again_text(finding, "fingerprint")) == 0) return true;
	return false;
}

static unsigned count_new(const json_t *before, const json_t *after)
{
	const json_t *finding;
	unsigned count = 0;
	size_t i;

	json_array_foreach(after, i, finding) count += !is_known(before, finding);
	return count;
}

static int verify_rest(const struct request *request, json_t *result);

static int verify(const struct changes *changes, const struct request *request,
		  const json_t *result)
{
	const json_t *before = json_object_get(result, "findings"), *after;
	json_t *again;
	unsigned appeared, left;

	if (!save_all(changes, true))
		return EXIT_CANNOT_WORK;
	fprintf(stderr, "perdure: building: %s\n", request->build);
	if (system(request->build) != 0) {
		save_all(changes, false);
		fprintf(stderr,
			"perdure: it does not build with the change, which was taken back\n");
		return EXIT_CANNOT_WORK;
	}
	again = analyse(result);
	after = json_object_get(again, "findings");
	if (!json_is_array(after)) {
		save_all(changes, false);
		fprintf(stderr, "perdure: it could not be run again; the change was taken back\n");
		return EXIT_CANNOT_WORK;
	}
	appeared = count_new(before, after);
	left = (unsigned)json_array_size(after);
	if (left - appeared >= json_array_size(before) || appeared) {
		save_all(changes, false);
		fprintf(stderr,
			"perdure: %zu findings before, %u after, %u of them new; the change "
			"was taken back\n",
			json_array_size(before), left, appeared);
		return EXIT_FINDINGS;
	}
	fprintf(stderr, "perdure: %zu findings before, %u after, none of them new\n",
		json_array_size(before), left);
	return left ? verify_rest(request, again) : EXIT_NOTHING_FOUND;
}

/* What is left may have a fix, too. */
static int verify_rest(const struct request *request, json_t *result)
{
	struct request all = { .build = request->build };
	struct changes changes = { 0 };

	if (request->ids && *request->ids)
		return EXIT_FINDINGS;
	fix_all(&changes, &all, result);
	return print_changes(&changes) ? verify(&changes, &all, result) : EXIT_FINDINGS;
}

/* ---- the command ---- */

static void print_fix_help(void)
{
	printf("perdure fix [--apply] [--verify BUILD] RESULT.json [ID...]\n\n"
	       "Prints a diff that cures the findings of a JSON result, or those that are named, as far\n"
	       "as that is certain: what is stored is written back, fenced, logged, or stored\n"
	       "atomically, with the functions that the file uses already.\n\n"
	       "  --apply         change the files\n"
	       "  --verify BUILD  change them, build with this shell command, and run the analysis\n"
	       "                  again: a change that cures nothing, or makes new findings, is taken back\n\n"
	       "Exit status: 0 if nothing is left to do, 1 if findings are left.\n");
}

static bool parse(char **words, struct request *request)
{
	for (; *words; words++) {
		if (strcmp(*words, "--apply") == 0)
			request->applies = true;
		else if (strcmp(*words, "--verify") == 0 && words[1])
			request->build = *++words;
		else if (strncmp(*words, "--verify=", 9) == 0)
			request->build = *words + 9;
		else if (**words == '-')
			return false;
		else
			break;
	}
	request->result = *words;
	request->ids = *words ? words + 1 : NULL;
	return request->result;
}

static bool has_finding(const json_t *result, const char *id)
{
	const json_t *finding;
	size_t i;

	json_array_foreach(json_object_get(result, "findings"), i, finding)
	{
		if (strcmp(again_text(finding, "id"), id) == 0)
			return true;
	}
	return false;
}

int command_fix(char **words)
{
	struct request request = { 0 };
	struct changes changes = { 0 };
	const char *directory;
	json_error_t error;
	json_t *result;
	if (*words && strcmp(*words, "--help") == 0) {
		print_fix_help();
		return EXIT_NOTHING_FOUND;
	}
	if (!parse(words, &request)) {
		fprintf(stderr,
			"perdure: perdure fix [--apply] [--verify BUILD] RESULT.json [ID...]\n");
		return EXIT_BAD_USAGE;
	}
	result = json_load_file(request.result, 0, &error);
	if (!result || !json_is_array(json_object_get(result, "findings"))) {
		fprintf(stderr, "perdure: %s is no result of perdure --json: %s\n", request.result,
			result ? "it has no findings" : error.text);
		return EXIT_CANNOT_WORK;
	}
	directory = again_text(result, "directory");
	if (directory && chdir(directory) < 0) {
		fprintf(stderr, "perdure: %s: %s\n", directory, strerror(errno));
		return EXIT_CANNOT_WORK;
	}
	for (char **id = request.ids; *id; id++)
		if (!has_finding(result, *id)) {
			fprintf(stderr, "perdure: %s has no finding %s\n", request.result, *id);
			return EXIT_BAD_USAGE;
		}
	fix_all(&changes, &request, result);
	if (changes.left)
		fprintf(stderr, "perdure: %u finding%s no certain fix\n", changes.left,
			changes.left == 1 ? " has" : "s have");
	if (!print_changes(&changes)) {
		fprintf(stderr, "perdure: no fix is certain\n");
		return json_array_size(json_object_get(result, "findings")) ? EXIT_FINDINGS
									    : EXIT_NOTHING_FOUND;
	}
	if (request.build)
		return verify(&changes, &request, result);
	if (request.applies && !save_all(&changes, true))
		return EXIT_CANNOT_WORK;
	return changes.left ? EXIT_FINDINGS : EXIT_NOTHING_FOUND;
}
