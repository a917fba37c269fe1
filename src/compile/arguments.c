/* SPDX-License-Identifier: BSD-3-Clause */
#include "compile/arguments.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void add_owned(struct arguments *arguments, char *text)
{
	if (!text)
		abort();
	if (arguments->count + 1 >= arguments->room) {
		arguments->room = arguments->room ? arguments->room * 2 : 64;
		arguments->list =
			realloc(arguments->list, arguments->room * sizeof(*arguments->list));
		if (!arguments->list)
			abort();
	}
	arguments->list[arguments->count++] = text;
	arguments->list[arguments->count] = NULL;
}

void arguments_add(struct arguments *arguments, const char *text)
{
	add_owned(arguments, strdup(text));
}

void arguments_addf(struct arguments *arguments, const char *format, ...)
{
	char *text = NULL;
	va_list values;

	va_start(values, format);
	if (vasprintf(&text, format, values) < 0)
		abort();
	va_end(values);
	add_owned(arguments, text);
}

static char *read_file(const char *path)
{
	FILE *file = fopen(path, "r");
	char *text = NULL;
	size_t size = 0;

	if (!file)
		return NULL;
	if (getdelim(&text, &size, 0, file) < 0) {
		free(text);
		text = strdup("");
	}
	fclose(file);
	return text;
}

/* Takes the next word off *text; quotes and backslashes as in GNU response files. */
static char *next_word(const char **text)
{
	const char *p = *text;
	char *word, *out, quote = 0;

	while (isspace((unsigned char)*p))
		p++;
	if (!*p)
		return NULL;
	word = out = malloc(strlen(p) + 1);
	if (!word)
		abort();
	for (; *p && (quote || !isspace((unsigned char)*p)); p++) {
		if (*p == '\\' && p[1])
			*out++ = *++p;
		else if (quote ? *p == quote : *p == '"' || *p == '\'')
			quote = quote ? 0 : *p;
		else
			*out++ = *p;
	}
	*out = 0;
	*text = p;
	return word;
}

static void expand_one(struct arguments *arguments, const char *text, int depth)
{
	char *content = text[0] == '@' && depth < 10 ? read_file(text + 1) : NULL;
	const char *rest = content;
	char *word;

	if (!content) {
		arguments_add(arguments, text);
		return;
	}
	while ((word = next_word(&rest))) {
		expand_one(arguments, word, depth + 1);
		free(word);
	}
	free(content);
}

void arguments_expand(struct arguments *arguments, char **argv)
{
	for (char **p = argv + 1; *p; p++)
		expand_one(arguments, *p, 0);
}

int arguments_run(const struct arguments *arguments, const char *program, int errors)
{
	posix_spawn_file_actions_t actions;
	int status, error;
	pid_t child;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
	error = posix_spawn(&child, program, &actions, NULL, arguments->list, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (error) {
		fprintf(stderr, "perdure-cc: cannot run %s: %s\n", program, strerror(error));
		return -1;
	}
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

char *arguments_own_directory(void)
{
	char path[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
	char *slash;

	path[length > 0 ? length : 0] = 0;
	slash = strrchr(path, '/');
	if (slash)
		*slash = 0;
	return strdup(path);
}
