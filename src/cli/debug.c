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
#include <sys/wait.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "drive/replaced.h"
#include "report/inputs.h"

enum { WORDS = 512 };

struct words {
	char *list[WORDS + 1];
	unsigned count;
};

static void add(struct words *words, const char *word)
{
	if (words->count < WORDS)
		words->list[words->count++] = (char *)word;
}

static void add_all(struct words *words, const json_t *list)
{
	const json_t *word;
	size_t i;

	json_array_foreach(list, i, word) add(words, json_string_value(word));
}

static pid_t running;

static void end_it(int unused)
{
	(void)unused;
	if (running > 0)
		kill(running, SIGKILL);
}

/* Whoever ends this process ends the other one first, so that files can be put back. */
static int run(const struct words *words, bool quiet, int input)
{
	struct sigaction action = { .sa_handler = end_it };
	int status;
	pid_t pid;

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	pid = running = fork();

	if (pid == 0) {
		signal(SIGTERM, SIG_DFL);
		signal(SIGHUP, SIG_DFL);
		if (input >= 0)
			dup2(input, STDIN_FILENO);
		if (quiet &&
		    (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)))
			_exit(126);
		unsetenv("PERDURE_SESSION");
		unsetenv("LD_PRELOAD");
		if (strcmp(words->list[0], "perdure") == 0)
			execv("/proc/self/exe", words->list);
		else
			execvp(words->list[0], words->list);
		_exit(127);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	running = 0;
	return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static const char *text(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

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

		if (!text(read, "map") || strcmp(text(read, "map"), map) != 0)
			continue;
		bytes = inputs_unhex(text(read, "bytes"), &size);
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

/* What the program was given, or nothing; gdb keeps the terminal. */
static int input_of(const json_t *result)
{
	const char *hex = text(result, "stdin");
	int fd = memfd_create("perdure-input", MFD_CLOEXEC);
	size_t size = 0;
	char *bytes = hex ? inputs_unhex(hex, &size) : NULL;

	if (fd >= 0 &&
	    (write(fd, bytes ? bytes : "", size) != (ssize_t)size || lseek(fd, 0, SEEK_SET) < 0)) {
		close(fd);
		fd = -1;
	}
	free(bytes);
	return fd;
}

bool debug_save_image(const json_t *result, const json_t *finding, const char *path)
{
	const json_t *crash = crash_of(finding);
	const char *kind = text(json_object_get(finding, "witness"), "image");
	const char *schedule = text(json_object_get(finding, "witness"), "schedule");
	struct words words = { 0 };
	char event[32];
	bool done;
	int input;

	if (!crash || !pm_file(result, 0)) {
		fprintf(stderr, "perdure: this finding needs no crash: there is no image\n");
		return false;
	}
	snprintf(event, sizeof(event), "%lld",
		 json_integer_value(json_object_get(crash, "event")) + 1);
	add(&words, "perdure");
	add(&words, text(result, "engine"));
	add_all(&words, json_object_get(result, "options"));
	if (schedule && strncmp(schedule, "script:", 7) == 0) {
		add(&words, "--schedule");
		add(&words, schedule);
	}
	add(&words, "--only-crash");
	add(&words, event);
	add(&words, "--image");
	add(&words, path);
	if (kind && strcmp(kind, "latest") == 0)
		add(&words, "--image-latest");
	add(&words, "--");
	add_all(&words, json_object_get(result, "command"));
	done = access(path, F_OK) == 0 || errno == ENOENT;
	input = input_of(result);
	done = done && input >= 0 && run(&words, true, input) <= EXIT_FINDINGS;
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
		const char *role = text(site, "role");

		if (role && (strcmp(role, "load") == 0 || strcmp(role, "crash") == 0))
			return site;
	}
	return json_array_get(sites, 0);
}

/* --recover, as a list of words; the program itself without one. */
static void add_target(struct words *words, const json_t *result, const json_t *finding)
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
				add(words, *list);
			return;
		}
	}
	add_all(words, json_object_get(result, "command"));
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
	char directory[] = P_tmpdir "/perdure-XXXXXX", image[PATH_MAX];
	bool done = mkdtemp(directory);

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
	struct words words = { 0 };
	char stop[PATH_MAX];
	int status;

	if (crash_of(finding) && !put_images(result, finding, &replaced)) {
		replaced_restore(&replaced);
		return EXIT_CANNOT_WORK;
	}
	snprintf(stop, sizeof(stop), "break %s:%lld", text(site, "file"),
		 json_integer_value(json_object_get(site, "line")));
	add(&words, "gdb");
	add(&words, "-q");
	add(&words, "-ex");
	add(&words, "set breakpoint pending on");
	add(&words, "-ex");
	add(&words, stop);
	add(&words, "-ex");
	add(&words, "run");
	add(&words, "--args");
	add_target(&words, result, finding);
	signal(SIGINT, SIG_IGN); /* it is gdb's */
	status = run(&words, false, -1);
	replaced_restore(&replaced);
	if (status == 127) {
		fprintf(stderr, "perdure: cannot run gdb: is it installed?\n");
		return EXIT_CANNOT_WORK;
	}
	return status < 0 ? EXIT_CANNOT_WORK : EXIT_NOTHING_FOUND;
}
