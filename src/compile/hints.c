/* SPDX-License-Identifier: BSD-3-Clause */
#include "compile/hints.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const struct {
	const char *text; /* in clang's message */
	const char *flag;
} hints[] = {
	{ "[-Wimplicit-function-declaration]", "-Wno-error=implicit-function-declaration" },
	{ "[-Wimplicit-int]", "-Wno-error=implicit-int" },
	{ "[-Wint-conversion]", "-Wno-error=int-conversion" },
	{ "[-Wincompatible-function-pointer-types]",
	  "-Wno-error=incompatible-function-pointer-types" },
	{ "[-Wreturn-mismatch]", "-Wno-error=return-mismatch" },
	{ "[-Wreturn-type]", "-Wno-error=return-type" },
	{ "[-Wc++11-narrowing]", "-Wno-c++11-narrowing" },
	{ "[-Wregister]", "-Wno-register" },
	{ "[-Wreserved-user-defined-literal]", "-Wno-reserved-user-defined-literal" },
	{ "-fheinous-gnu-extensions", "-fheinous-gnu-extensions" },
	{ "always_inline function", "-march=native (or the -m flag that the message names)" },
	{ "function definition is not allowed here", "nothing: gcc's nested functions do not exist "
						     "in clang; move the function out" },
};

/* The compiler's messages, by running it once more with its standard error kept. */
static char *messages(const struct arguments *command, const char *clang)
{
	int fd = memfd_create("perdure-messages", MFD_CLOEXEC), saved = dup(STDERR_FILENO);
	char *text = NULL;
	off_t size;

	if (fd < 0 || saved < 0)
		return NULL;
	dup2(fd, STDERR_FILENO);
	arguments_run(command, clang, false);
	dup2(saved, STDERR_FILENO);
	close(saved);
	size = lseek(fd, 0, SEEK_END);
	text = size > 0 ? calloc(1, size + 1) : NULL;
	if (text && pread(fd, text, size, 0) != size)
		*text = 0;
	close(fd);
	return text;
}

void hints_print(const struct arguments *command, const char *clang)
{
	char *text = messages(command, clang);

	for (size_t i = 0; text && i < sizeof(hints) / sizeof(*hints); i++) {
		const char *at = strstr(text, hints[i].text);

		/* Only where it was an error: "error: … [-Wfoo]". */
		while (at) {
			const char *line = at;

			while (line > text && line[-1] != '\n')
				line--;
			if (memmem(line, at - line, "error:", 6)) {
				fprintf(stderr,
					"perdure-cc: note: gcc accepts this; with clang it helps to add: %s\n",
					hints[i].flag);
				break;
			}
			at = strstr(at + 1, hints[i].text);
		}
	}
	free(text);
}
