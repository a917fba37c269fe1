/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/debug.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/again.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "drive/replaced.h"
#include "drive/target.h"
#include "report/inputs.h"

/* ---- images ---- */

static const json_t *crash_of(const json_t *finding)
{
	const json_t *crash = json_object_get(finding, "crash_point");

	return json_is_object(crash) ? crash : NULL;
}

/* What the recovery read where it had a choice. */
static bool put_reads(const json_t *finding, const char *map, const char *path)
{
	const json_t *read, *reads = json_object_get(json_object_get(finding, "witness"), "reads");
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0;
	size_t i;

	json_array_foreach(reads, i, read)
	{
		size_t size;
		char *bytes;

		if (!again_text(read, "map") || strcmp(again_text(read, "map"), map) != 0)
			continue;
		bytes = inputs_unhex(again_text(read, "bytes"), &size);
		done &= pwrite(fd, bytes, size,
			       json_integer_value(json_object_get(read, "offset"))) ==
			(ssize_t)size;
		free(bytes);
	}
	if (fd >= 0)
		close(fd);
	return done;
}

static const char *pm_file(const json_t *result, size_t number)
{
	return json_string_value(json_array_get(json_object_get(result, "pm_files"), number));
}

/* The image of that file: the first one is as the user says, the second FILE.2, and so on. */
static const char *image_of(const char *path, size_t number)
{
	static char name[PATH_MAX + 32];

	snprintf(name, sizeof(name), number ? "%s.%zu" : "%s", path, number + 1);
	return name;
}

bool debug_save_image(const json_t *result, const json_t *finding, const char *path)
{
	const char *kind = again_text(json_object_get(finding, "witness"), "image");
	struct again again = { 0 };
	bool done;
	int input;

	if (!crash_of(finding) || !pm_file(result, 0)) {
		fprintf(stderr, "perdure: this finding needs no crash: there is no image\n");
		return false;
	}
	again_begin(&again, result, finding);
	again_add(&again, "--image");
	again_add(&again, path);
	if (kind && strcmp(kind, "latest") == 0)
		again_add(&again, "--image-latest");
	again_end(&again, result);
	done = access(path, F_OK) == 0 || errno == ENOENT;
	input = again_input(result); /* gdb keeps the terminal */
	done = done && input >= 0 && again_run(&again, true, input) <= EXIT_FINDINGS;
	close(input);
	for (size_t i = 0; done && pm_file(result, i); i++)
		if (access(image_of(path, i), W_OK) == 0)
			done = put_reads(finding, pm_file(result, i), image_of(path, i));
	done = done && access(path, R_OK) == 0;
	if (!done)
		fprintf(stderr, "perdure: the image %s could not be written: %s\n", path,
			strerror(errno));
	return done;
}

/* ---- gdb ---- */

/* Where to stop: the load, or where the recovery ends; otherwise the first place. */
static const json_t *place_of(const json_t *finding)
{
	const json_t *site, *sites = json_object_get(finding, "sites");
	size_t i;

	json_array_foreach(sites, i, site)
	{
		const char *role = again_text(site, "role");

		if (role && (strcmp(role, "load") == 0 || strcmp(role, "crash") == 0))
			return site;
	}
	return json_array_get(sites, 0);
}

/* --recover, as a list of words; the program itself without one. */
static void add_target(struct again *again, const json_t *result, const json_t *finding)
{
	const json_t *options = json_object_get(result, "options"), *word;
	size_t i;

	json_array_foreach(options, i, word)
	{
		const char *option = json_string_value(word), *command = NULL;

		if (strcmp(option, "--recover") == 0)
			command = json_string_value(json_array_get(options, i + 1));
		else if (strncmp(option, "--recover=", 10) == 0)
			command = option + 10;
		if (command && crash_of(finding)) {
			char **list = options_split(command);

			for (; list && *list; list++)
				again_add(again, *list);
			return;
		}
	}
	again_add_all(again, json_object_get(result, "command"));
}

/* A file as another one is. */
static bool put_file(struct replaced *replaced, const char *path, const char *image)
{
	int fd = open(image, O_RDONLY | O_CLOEXEC);
	struct stat status;
	void *bytes;
	bool done;

	if (fd < 0 || fstat(fd, &status) < 0)
		return false;
	bytes = mmap(NULL, (size_t)status.st_size + 1, PROT_READ, MAP_PRIVATE, fd, 0);
	done = bytes != MAP_FAILED && replaced_put(replaced, path, bytes, (size_t)status.st_size);
	if (bytes != MAP_FAILED)
		munmap(bytes, (size_t)status.st_size + 1);
	close(fd);
	return done;
}

static bool put_images(const json_t *result, const json_t *finding, struct replaced *replaced)
{
	char directory[PATH_MAX - 16], image[PATH_MAX];
	bool done = target_make_directory(directory, sizeof(directory));

	snprintf(image, sizeof(image), "%s/image", directory);
	done = done && debug_save_image(result, finding, image);
	for (size_t i = 0; pm_file(result, i); i++) {
		if (done && access(image_of(image, i), R_OK) == 0)
			done = put_file(replaced, pm_file(result, i), image_of(image, i));
		unlink(image_of(image, i));
	}
	rmdir(directory);
	return done;
}

int debug_run(const json_t *result, const json_t *finding)
{
	const json_t *site = place_of(finding);
	struct replaced replaced = { 0 };
	struct again again = { 0 };
	char stop[PATH_MAX];
	int status;

	if (crash_of(finding) && !put_images(result, finding, &replaced)) {
		replaced_restore(&replaced);
		return EXIT_CANNOT_WORK;
	}
	snprintf(stop, sizeof(stop), "break %s:%lld", again_text(site, "file"),
		 json_integer_value(json_object_get(site, "line")));
	again_add(&again, "gdb");
	again_add(&again, "-q");
	again_add(&again, "-ex");
	again_add(&again, "set breakpoint pending on");
	again_add(&again, "-ex");
	again_add(&again, stop);
	again_add(&again, "-ex");
	again_add(&again, "run");
	again_add(&again, "--args");
	add_target(&again, result, finding);
	signal(SIGINT, SIG_IGN); /* it is gdb's */
	status = again_run(&again, false, -1);
	replaced_restore(&replaced);
	if (status == 127) {
		fprintf(stderr, "perdure: cannot run gdb: is it installed?\n");
		return EXIT_CANNOT_WORK;
	}
	return status < 0 ? EXIT_CANNOT_WORK : EXIT_NOTHING_FOUND;
}
