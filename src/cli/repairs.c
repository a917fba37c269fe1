/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/repairs.h"

#include <jansson.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS = 2 * SESSION_GLOBS + 64 };

static char *const *words_of(const struct options *options, const char *output)
{
	static const char *words[WORDS];
	unsigned n = 0;

	words[n++] = "perdure";
	words[n++] = "check";
	words[n++] = "--quiet";
	words[n++] = "--strict-commit"; /* whatever is read too early counts */
	words[n++] = "--json";
	words[n++] = output;
	for (uint32_t i = 0; i < options->session.globs; i++) {
		words[n++] = "--pm";
		words[n++] = options->session.glob[i];
	}
	if (options->session.heap)
		words[n++] = "--pm-heap";
	if (options->recover_text) {
		words[n++] = "--recover";
		words[n++] = options->recover_text;
	}
	if (options->drive) {
		words[n++] = "--drive";
		words[n++] = options->drive;
	}
	words[n++] = "--";
	for (char **word = options->command; *word && n < WORDS - 1; word++)
		words[n++] = *word;
	words[n] = NULL;
	return (char *const *)words;
}

static bool run_check(const struct options *options, const char *output)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		if (!freopen("/dev/null", "w", stdout))
			_exit(126);
		unsetenv("PERDURE_SESSION"); /* it is no part of this one */
		unsetenv("LD_PRELOAD");
		execv("/proc/self/exe", words_of(options, output));
		_exit(127);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
	       WEXITSTATUS(status) < 2;
}

/* Every place that any finding mentions: its store may be among them under some other name. */
static char **places_in(const json_t *report)
{
	char **list = NULL;
	size_t count = 0, i, k;
	json_t *finding, *site;

	json_array_foreach(json_object_get(report, "findings"), i, finding)
		json_array_foreach(json_object_get(finding, "sites"), k, site)
	{
		const char *file = json_string_value(json_object_get(site, "file"));
		long line = json_integer_value(json_object_get(site, "line"));

		list = realloc(list, (count + 2) * sizeof(*list));
		if (!list || asprintf(&list[count++], "%s:%ld", file ? file : "?", line) < 0)
			abort();
	}
	if (!list)
		list = calloc(1, sizeof(*list));
	list[count] = NULL;
	return list;
}

char **repairs_find(const struct options *options)
{
	int fd = memfd_create("perdure-report", MFD_CLOEXEC);
	json_t *report = NULL;
	char **list = NULL, path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), fd);
	if (fd >= 0 && run_check(options, path))
		report = json_load_file(path, 0, NULL);
	if (report)
		list = places_in(report);
	else
		fprintf(stderr, "perdure: --check-recovery: perdure check could not do its work\n");
	json_decref(report);
	if (fd >= 0)
		close(fd);
	return list;
}
