/* SPDX-License-Identifier: BSD-3-Clause */
/* A growing argument vector, and response files. */
#ifndef COMPILE_ARGUMENTS_H
#define COMPILE_ARGUMENTS_H

/* Set for the compile steps if the user says --symbolic. */
#define SYMBOLIC_VARIABLE "PERDURE_SYMBOLIC"

#include <stddef.h>

struct arguments {
	char **list; /* null-terminated */
	size_t count, room;
};

void arguments_add(struct arguments *arguments, const char *text);
void arguments_addf(struct arguments *arguments, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Adds argv[1…], with every readable @file replaced by what it contains, quoted as GNU tools do. */
void arguments_expand(struct arguments *arguments, char **argv);

/*
 * Runs a program and waits; the exit status as a shell would give it. -1: it did not start. Its
 * standard error goes to the descriptor `errors`.
 */
int arguments_run(const struct arguments *arguments, const char *program, int errors);

/* The directory of this executable, without the last path component. Allocated. */
char *arguments_own_directory(void);

#endif
