/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/again.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report/inputs.h"

const char *again_text(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

void again_add(struct again *again, const char *word)
{
	if (again->words < AGAIN_WORDS)
		again->word[again->words++] = (char *)word;
}

void again_add_all(struct again *again, const json_t *list)
{
	const json_t *word;
	size_t i;

	json_array_foreach(list, i, word)
	{
		again_add(again, json_string_value(word) ? json_string_value(word) : "");
	}
}

void again_begin(struct again *again, const json_t *result, const json_t *finding)
{
	const json_t *crash = json_object_get(finding, "crash_point");
	const char *schedule = again_text(json_object_get(finding, "witness"), "schedule");

	again_add(again, "perdure");
	again_add(again, again_text(result, "engine"));
	again_add_all(again, json_object_get(result, "options"));
	if (schedule && strncmp(schedule, "script:", 7) == 0) {
		again_add(again, "--schedule");
		again_add(again, schedule);
	}
	if (json_is_object(crash)) {
		snprintf(again->event, sizeof(again->event), "%lld",
			 json_integer_value(json_object_get(crash, "event")) + 1);
		again_add(again, "--only-crash");
		again_add(again, again->event);
	}
}

void again_end(struct again *again, const json_t *result)
{
	again_add(again, "--");
	again_add_all(again, json_object_get(result, "command"));
}

int again_input(const json_t *result)
{
	const char *hex = again_text(result, "stdin");
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

static pid_t running;

static void end_it(int unused)
{
	(void)unused;
	if (running > 0)
		kill(running, SIGKILL);
}

int again_run(const struct again *again, bool quiet, int input)
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
		unsetenv("PERDURE_SESSION"); /* it is no part of this one */
		unsetenv("LD_PRELOAD");
		if (strcmp(again->word[0], "perdure") == 0)
			execv("/proc/self/exe", again->word);
		else
			execvp(again->word[0], again->word);
		_exit(127);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	running = 0;
	return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
