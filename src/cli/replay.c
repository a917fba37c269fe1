/* SPDX-License-Identifier: BSD-3-Clause */
/* perdure replay: a finding once more. */
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
#include "cli/debug.h"
#include "cli/last.h"
#include "cli/options.h"
#include "drive/replaced.h"
#include "report/inputs.h"

struct replay {
	json_t *json;
	char **words;
	size_t count;
	struct replaced replaced;
	int named; /* what the program calls symbolic, as text */
};

static void add_word(struct replay *replay, const char *word)
{
	replay->words = realloc(replay->words, (replay->count + 2) * sizeof(*replay->words));
	if (!replay->words)
		abort();
	replay->words[replay->count++] = strdup(word);
	replay->words[replay->count] = NULL;
}

static int memory_file(const char *bytes, size_t size)
{
	int fd = memfd_create("perdure-input", 0);

	if (fd >= 0 && write(fd, bytes, size) == (ssize_t)size)
		lseek(fd, 0, SEEK_SET);
	return fd;
}

static bool give(struct replay *replay, const json_t *source)
{
	const char *kind, *name, *hex;
	size_t size;
	char *bytes;
	bool done = true;

	if (json_unpack((json_t *)source, "{s:s, s:s, s:s}", "kind", &kind, "name", &name, "hex",
			&hex) < 0)
		return false;
	bytes = inputs_unhex(hex, &size);
	if (strcmp(kind, "argument") == 0)
		add_word(replay, bytes);
	else if (strcmp(kind, "env") == 0)
		setenv(name, bytes, 1);
	else if (strcmp(kind, "stdin") == 0)
		done = dup2(memory_file(bytes, size), STDIN_FILENO) == STDIN_FILENO;
	else if (strcmp(kind, "file") == 0)
		done = replaced_put(&replay->replaced, name, bytes, size);
	else if (strcmp(kind, "packet") == 0)
		; /* the client sends it */
	else if (strcmp(kind, "schedule") == 0)
		fprintf(stderr, "perdure: which thread ran when is not repeated natively\n");
	else
		done = write(replay->named, hex, strlen(hex)) == (ssize_t)strlen(hex);
	if (!done)
		fprintf(stderr, "perdure: cannot prepare the input (%s %s): %s\n", kind, name,
			strerror(errno));
	free(bytes);
	return done;
}

static bool add_words(struct replay *replay, const char *key)
{
	const json_t *list = json_object_get(replay->json, key);
	const json_t *word;
	size_t i;

	json_array_foreach(list, i, word)
		add_word(replay, json_string_value(word) ? json_string_value(word) : "");
	return json_is_array(list);
}

/* Packets are sent by a process of its own, when the program listens. */
static void add_client(struct replay *replay, const char *path)
{
	const json_t *source, *inputs = json_object_get(replay->json, "input");
	char own[PATH_MAX], command[3 * PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);
	size_t i;

	own[length > 0 ? length : 0] = 0;
	json_array_foreach(inputs, i, source)
	{
		const char *kind = json_string_value(json_object_get(source, "kind"));

		if (!kind || strcmp(kind, "packet") != 0)
			continue;
		snprintf(command, sizeof(command), "exec '%s' --send '%s'", own, path);
		add_word(replay, "--drive");
		add_word(replay, command);
		return;
	}
}

static bool prepare(struct replay *replay, const char *path, const char *result)
{
	const json_t *source, *inputs = json_object_get(replay->json, "input");
	const char *directory = json_string_value(json_object_get(replay->json, "directory"));
	char variable[64];
	size_t i;

	if (directory && chdir(directory) < 0) {
		fprintf(stderr, "perdure: %s: %s\n", directory, strerror(errno));
		return false;
	}
	replay->named = memfd_create("perdure-named", 0);
	snprintf(variable, sizeof(variable), "/proc/%d/fd/%d", getpid(), replay->named);
	setenv("PERDURE_INPUTS", variable, 1);
	add_word(replay, "--json");
	add_word(replay, result);
	if (!add_words(replay, "options"))
		return false;
	if (json_object_get(replay->json, "crash_options") && !add_words(replay, "crash_options"))
		return false;
	add_client(replay, path);
	add_word(replay, "--");
	if (!add_words(replay, "command"))
		return false;
	json_array_foreach(inputs, i, source) if (!give(replay, source)) return false;
	return true;
}

/* Is the finding among those of this run? */
static bool is_there(const char *path, const char *fingerprint)
{
	json_t *result = json_load_file(path, 0, NULL);
	const json_t *finding;
	size_t i;
	bool found = false;

	json_array_foreach(json_object_get(result, "findings"), i, finding)
	{
		const char *other = json_string_value(json_object_get(finding, "fingerprint"));

		found |= other && fingerprint && strcmp(other, fingerprint) == 0;
	}
	json_decref(result);
	return found;
}

static void print_replay_help(void)
{
	printf("perdure replay [--inputs DIR] [--gdb] ID|FILE\n"
	       "perdure replay --from RESULT.json [--gdb | --image FILE] ID\n\n"
	       "Shows a finding again: one of perdure explore natively, with the input that it was kept\n"
	       "with; one of perdure check or model from a JSON result, or the last one of this directory,\n"
	       "with its schedule and its crash.\n"
	       "Exit status: 1 if the finding is there, 0 if it is not.\n\n"
	       "  --gdb         the program, or its recovery with PM as the crash leaves it, in gdb\n"
	       "  --image FILE  only write PM as the crash leaves it, for other tools\n");
}

struct request {
	const char *directory, *from, *id, *image;
	bool gdb;
};

static bool is_option(char ***words, const char *name, const char **value)
{
	size_t length = strlen(name);

	if (strcmp(**words, name) == 0 && (*words)[1])
		*value = *++*words;
	else if (strncmp(**words, name, length) == 0 && (**words)[length] == '=')
		*value = **words + length + 1;
	else
		return false;
	return true;
}

static bool parse(char **words, struct request *request)
{
	for (; *words; words++) {
		if (is_option(&words, "--inputs", &request->directory) ||
		    is_option(&words, "--from", &request->from) ||
		    is_option(&words, "--image", &request->image))
			continue;
		if (strcmp(*words, "--gdb") == 0)
			request->gdb = true;
		else if (!request->id && **words != '-')
			request->id = *words;
		else
			return false;
	}
	return request->id;
}

/* ---- a finding of a JSON result ---- */

static const json_t *find(const json_t *result, const char *id)
{
	const json_t *finding;
	size_t i;

	json_array_foreach(json_object_get(result, "findings"), i, finding)
	{
		const char *other = json_string_value(json_object_get(finding, "id"));

		if (other && strcmp(other, id) == 0)
			return finding;
	}
	return NULL;
}

static void give_stdin(const json_t *result)
{
	const json_t *kept = json_object_get(result, "stdin");

	if (json_is_string(kept))
		dup2(again_input(result), STDIN_FILENO);
	else if (kept)
		fprintf(stderr,
			"perdure: what the program was given as standard input was too much to be "
			"kept: give it the same\n");
}

/* The same run, with the one crash; what was not about a crash is seen in any. */
static int crash_again(const json_t *result, const json_t *finding, const char *path)
{
	const char *engine = again_text(result, "engine");
	struct again again = { 0 };
	char **words = again.word + 2; /* behind the name of the command */

	again_begin(&again, result, finding);
	again_add(&again, "--json");
	again_add(&again, path);
	again_end(&again, result);
	return engine && strcmp(engine, "model") == 0 ? command_model(words)
	       : engine && strcmp(engine, "run") == 0 ? command_run(words)
						      : command_check(words);
}

static int report_again(const char *id, const char *result, const json_t *finding, int status)
{
	bool found;

	if (status != EXIT_NOTHING_FOUND && status != EXIT_FINDINGS)
		return status;
	found = is_there(result, json_string_value(json_object_get(finding, "fingerprint")));
	fprintf(stderr, "perdure: the finding %s%s\n", id,
		found ? " is there again" : " was not seen in this run");
	return found ? EXIT_FINDINGS : EXIT_NOTHING_FOUND;
}

static int replay_result(const struct request *request)
{
	struct replay replay = { 0 };
	const json_t *finding;
	const char *directory;
	char result[64], image[PATH_MAX];
	json_error_t error;
	int fd;

	replay.json = json_load_file(request->from, 0, &error);
	finding = replay.json ? find(replay.json, request->id) : NULL;
	if (!finding) {
		fprintf(stderr, "perdure: %s: %s%s\n", request->from,
			replay.json ? "it has no finding " : error.text,
			replay.json ? request->id : "");
		return EXIT_CANNOT_WORK;
	}
	if (request->image && request->image[0] != '/') {
		if (!getcwd(image, sizeof(image)))
			return EXIT_CANNOT_WORK;
		snprintf(image + strlen(image), sizeof(image) - strlen(image), "/%s",
			 request->image);
	} else if (request->image) {
		snprintf(image, sizeof(image), "%s", request->image);
	}
	directory = json_string_value(json_object_get(replay.json, "directory"));
	if (directory && chdir(directory) < 0) {
		fprintf(stderr, "perdure: %s: %s\n", directory, strerror(errno));
		return EXIT_CANNOT_WORK;
	}
	if (json_is_array(json_object_get(finding, "input"))) {
		fprintf(stderr,
			"perdure: this finding has an input of its own: perdure replay [--inputs DIR] %s\n",
			request->id);
		return EXIT_BAD_USAGE;
	}
	if (request->gdb)
		return debug_run(replay.json, finding);
	give_stdin(replay.json);
	if (request->image)
		return debug_save_image(replay.json, finding, image) ? EXIT_NOTHING_FOUND
								     : EXIT_CANNOT_WORK;
	fd = memfd_create("perdure-result", MFD_CLOEXEC);
	snprintf(result, sizeof(result), "/proc/%d/fd/%d", getpid(), fd);
	return report_again(request->id, result, finding,
			    crash_again(replay.json, finding, result));
}

/* ---- an input of perdure explore ---- */

static int replay_input(const struct request *request)
{
	struct replay replay = { 0 };
	char path[PATH_MAX], whole[PATH_MAX], result[64];
	json_error_t error;
	int status, fd;

	if (strchr(request->id, '/'))
		snprintf(path, sizeof(path), "%s", request->id);
	else
		snprintf(path, sizeof(path), "%s/%s.json", request->directory, request->id);
	replay.json = json_load_file(path, 0, &error);
	if (!replay.json) {
		fprintf(stderr, "perdure: %s: %s\n", path,
			access(path, R_OK) < 0 ? strerror(errno) : error.text);
		return EXIT_CANNOT_WORK;
	}
	fd = memfd_create("perdure-result", MFD_CLOEXEC);
	snprintf(result, sizeof(result), "/proc/%d/fd/%d", getpid(), fd);
	if (!realpath(path, whole) || !prepare(&replay, whole, result)) {
		replaced_restore(&replay.replaced);
		fprintf(stderr,
			"perdure: %s is not an input of perdure explore, or cannot be used\n",
			path);
		return EXIT_CANNOT_WORK;
	}
	status = json_object_get(replay.json, "crash_options") ? command_check(replay.words)
							       : command_run(replay.words);
	replaced_restore(&replay.replaced);
	return report_again(request->id, result, replay.json, status);
}

/* Has perdure explore kept one with that name? */
static bool has_input(const struct request *request)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s.json", request->directory, request->id);
	return strchr(request->id, '/') || access(path, R_OK) == 0;
}

int command_replay(char **words)
{
	struct request request = { .directory = INPUTS_DIRECTORY };
	char last[PATH_MAX];

	if (*words && strcmp(*words, "--help") == 0) {
		print_replay_help();
		return EXIT_NOTHING_FOUND;
	}
	if (!parse(words, &request)) {
		fprintf(stderr, "perdure: which finding? perdure replay [--inputs DIR] ID, or "
				"perdure replay --from RESULT.json ID\n");
		return EXIT_BAD_USAGE;
	}
	if (request.gdb && request.image) {
		fprintf(stderr, "perdure: --gdb or --image, not both\n");
		return EXIT_BAD_USAGE;
	}
	last_stays();
	if (!request.from && !has_input(&request) && last_path(last, sizeof(last)) &&
	    access(last, R_OK) == 0)
		request.from = last;
	if ((request.gdb || request.image) && !request.from) {
		fprintf(stderr, "perdure: --gdb and --image need a result: --from RESULT.json\n");
		return EXIT_BAD_USAGE;
	}
	return request.from ? replay_result(&request) : replay_input(&request);
}
