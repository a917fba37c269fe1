/* SPDX-License-Identifier: BSD-3-Clause */
#include "compile/hints.h"

#include <stdio.h>
#include <string.h>

static const struct hint {
	const char *text; /* in clang's message */
	const char *flag; /* what helps */
	bool gcc_accepts; /* by default, so it is given */
} hints[] = {
	{ "[-Wimplicit-function-declaration]", "-Wno-error=implicit-function-declaration", true },
	{ "[-Wimplicit-int]", "-Wno-error=implicit-int", true },
	{ "[-Wint-conversion]", "-Wno-error=int-conversion", true },
	{ "[-Wincompatible-function-pointer-types]",
	  "-Wno-error=incompatible-function-pointer-types", true },
	{ "[-Wreturn-mismatch]", "-Wno-error=return-mismatch", true },
	{ "[-Wreturn-type]", "-Wno-error=return-type", true },
	{ "-fheinous-gnu-extensions", "-fheinous-gnu-extensions", true },
	{ "[-Wc++11-narrowing]", "-Wno-c++11-narrowing", true },
	{ "[-Wregister]", "-Wno-register", true },
	{ "[-Wreserved-user-defined-literal]", "-Wno-reserved-user-defined-literal", true },
	{ "'omp.h' file not found", "the header that Debian has in libomp-19-dev", false },
	{ "always_inline function", "-march=native (or the -m flag that the message names)",
	  false },
	{ "function definition is not allowed here",
	  "nothing: clang has no nested functions as gcc has; move the function out", false },
};
enum { HINTS = sizeof(hints) / sizeof(*hints) };

/* The hint for a line that is an error; null if there is none. */
static const struct hint *find(const char *line, size_t length)
{
	for (int i = 0; i < HINTS; i++)
		if (memmem(line, length, hints[i].text, strlen(hints[i].text)))
			return &hints[i];
	return NULL;
}

/* Calls `visit` for each line with an error; colours may surround the word. */
static void each_error(const char *messages, void (*visit)(const struct hint *, void *),
		       void *argument)
{
	while (*messages) {
		const char *end = strchrnul(messages, '\n');
		size_t length = end - messages;

		if (memmem(messages, length, "error: ", 7))
			visit(find(messages, length), argument);
		messages = *end ? end + 1 : end;
	}
}

struct collection {
	bool seen[HINTS];
	bool other; /* an error that no flag would cure */
};

/* Of templates that nobody uses, gcc does not want to know whether all names in them are there. */
static const char lazily[] = "-fdelayed-template-parsing";

static void collect(const struct hint *hint, void *argument)
{
	struct collection *collection = argument;

	if (hint)
		collection->seen[hint - hints] = true;
	if (!hint || !hint->gcc_accepts)
		collection->other = true;
}

bool hints_flags(const char *messages, bool cxx, bool strict, struct arguments *flags)
{
	struct collection collection = { 0 };

	each_error(messages, collect, &collection);
	if (collection.other && !cxx)
		return false;
	for (int i = 0; i < HINTS; i++)
		if (collection.seen[i] && hints[i].gcc_accepts && !strict)
			arguments_add(flags, hints[i].flag);
	if (collection.other)
		arguments_add(flags, lazily);
	return flags->count > 0;
}

/* Warnings that only clang has, made errors by -Werror: "[-Werror,-Wname]". */
static void print_promoted(const char *messages)
{
	static const char mark[] = "[-Werror,-W";
	struct arguments seen = { 0 };

	for (const char *at = messages; (at = strstr(at, mark)); at++) {
		const char *name = at + strlen(mark);
		size_t length = strcspn(name, "]\n"), i;

		for (i = 0; i < seen.count; i++)
			if (strlen(seen.list[i]) == length && !strncmp(seen.list[i], name, length))
				break;
		if (i < seen.count)
			continue;
		arguments_addf(&seen, "%.*s", (int)length, name);
		fprintf(stderr,
			"perdure-cc: note: gcc may not warn here; with clang and -Werror it helps to add: "
			"-Wno-error=%.*s\n",
			(int)length, name);
	}
}

void hints_print(const char *messages, bool accepted)
{
	struct collection collection = { 0 };

	print_promoted(messages);
	each_error(messages, collect, &collection);
	for (int i = 0; i < HINTS; i++)
		if (collection.seen[i])
			fprintf(stderr,
				accepted
					? "perdure-cc: note: accepted as gcc does; for clang alone "
					  "add: %s\n"
					: "perdure-cc: note: this may be fine for gcc; with clang "
					  "it helps to add: %s\n",
				hints[i].flag);
	if (accepted && collection.other)
		fprintf(stderr, "perdure-cc: note: accepted as gcc does; for clang alone add: %s\n",
			lazily);
}
