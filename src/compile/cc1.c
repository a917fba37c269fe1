/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/perdure/perdure-cc: stands in for `clang -cc1`. Compiles to bitcode without optimisation,
 * instruments it, and gives the result back to clang for optimisation and code generation. Steps
 * that make no code (preprocessing, precompiled headers, the assembler) go to clang unchanged.
 */
#include <errno.h>
#include <fcntl.h>
#include <llvm-c/BitReader.h>
#include <llvm-c/BitWriter.h>
#include <llvm-c/Core.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "compile/arguments.h"
#include "compile/hints.h"
#include "compile/instrument.h"

struct step {
	const struct arguments *given;
	const char *clang;
	size_t action;   /* index of -emit-obj and the like; 0 if there is none that makes code */
	size_t output;   /* index of the file name after -o; 0 if there is none */
	size_t language; /* index of the word after -x */
	bool optimise;
	bool symbolic; /* --symbolic: by the environment, from driver.c */
};

static bool makes_code(const char *action)
{
	return strcmp(action, "-emit-obj") == 0 || strcmp(action, "-S") == 0 ||
	       strcmp(action, "-emit-llvm") == 0 || strcmp(action, "-emit-llvm-bc") == 0;
}

static bool is_source(const char *language)
{
	static const char *const languages[] = {
		"c",   "cpp-output",  "c++",           "c++-cpp-output",
		"ir",  "objective-c", "objective-c++", "c++-module",
		"pcm",
	};

	for (size_t i = 0; i < sizeof(languages) / sizeof(*languages); i++)
		if (strcmp(language, languages[i]) == 0)
			return true;
	return false;
}

static void examine(struct step *step)
{
	char **list = step->given->list;

	for (size_t i = 1; i < step->given->count; i++) {
		if (makes_code(list[i]))
			step->action = i;
		else if (strcmp(list[i], "-o") == 0)
			step->output = ++i;
		else if (strcmp(list[i], "-x") == 0)
			step->language = ++i;
		else if (strncmp(list[i], "-O", 2) == 0)
			step->optimise = strcmp(list[i], "-O0") != 0;
	}
	if (!step->output || !step->language || !is_source(list[step->language]))
		step->action = 0;
}

static int run_unchanged(struct step *step)
{
	execv(step->clang, step->given->list);
	fprintf(stderr, "perdure-cc: cannot run %s: %s\n", step->clang, strerror(errno));
	return 3;
}

/* A file in memory that the next clang process reads or writes by its descriptor. */
static int memory_file(const char *name)
{
	int fd = memfd_create(name, 0);

	if (fd < 0) {
		fprintf(stderr, "perdure-cc: cannot create a file in memory: %s\n",
			strerror(errno));
		exit(3);
	}
	return fd;
}

/* The first step with further flags, its messages going to `errors`. */
static int run_front_end(const struct step *step, const struct arguments *flags, int fd, int errors)
{
	struct arguments command = { 0 };

	arguments_add(&command, step->given->list[0]);
	arguments_add(&command, "-cc1");
	arguments_add(&command, "-disable-llvm-passes");
	arguments_add(&command, "-disable-O0-optnone");
	arguments_add(&command, "-fno-temp-file");
	for (size_t i = 0; i < flags->count; i++)
		arguments_add(&command, flags->list[i]);
	for (size_t i = 2; i < step->given->count; i++) {
		if (i == step->action)
			arguments_add(&command, "-emit-llvm-bc");
		else if (i == step->output)
			arguments_addf(&command, "/proc/self/fd/%d", fd);
		else
			arguments_add(&command, step->given->list[i]);
	}
	return arguments_run(&command, step->clang, errors);
}

static char *read_all(int fd)
{
	off_t size = lseek(fd, 0, SEEK_END);
	char *text = calloc(1, size + 1);

	if (!text || pread(fd, text, size, 0) != size)
		abort();
	return text;
}

static bool wants_errors(const struct step *step)
{
	for (size_t i = 1; i < step->given->count; i++)
		if (strcmp(step->given->list[i], "-Werror") == 0)
			return true;
	return false;
}

/* What is old gets a second chance with what gcc would accept. */
static int compile_to_bitcode(const struct step *step, int fd)
{
	int errors = memory_file("perdure-messages"), again = memory_file("perdure-messages");
	const char *language = step->given->list[step->language];
	struct arguments flags = { 0 };
	int status = run_front_end(step, &flags, fd, errors);
	char *messages = read_all(errors);
	bool accepted = false;

	if (status > 0 &&
	    hints_flags(messages, strncmp(language, "c++", 3) == 0, wants_errors(step), &flags) &&
	    run_front_end(step, &flags, fd, again) == 0) {
		char *warnings = read_all(again);

		accepted = true;
		status = 0;
		fputs(warnings, stderr);
		free(warnings);
	} else {
		fputs(messages, stderr);
	}
	if (status > 0 || accepted)
		hints_print(messages, accepted);
	free(messages);
	close(errors);
	close(again);
	return status;
}

static LLVMModuleRef read_module(LLVMContextRef context, int fd)
{
	LLVMMemoryBufferRef buffer;
	LLVMModuleRef module;
	char path[64], *error = NULL;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (LLVMCreateMemoryBufferWithContentsOfFile(path, &buffer, &error)) {
		fprintf(stderr, "perdure-cc: internal error: cannot read bitcode: %s\n", error);
		return NULL;
	}
	if (LLVMParseBitcodeInContext2(context, buffer, &module)) {
		fprintf(stderr, "perdure-cc: internal error: clang wrote bitcode that this LLVM "
				"cannot read (is PERDURE_CLANG another version?)\n");
		return NULL;
	}
	LLVMDisposeMemoryBuffer(buffer);
	return module;
}

static bool instrument_file(int from, int to, const struct step *step)
{
	LLVMContextRef context = LLVMContextCreate();
	LLVMModuleRef module = read_module(context, from);

	if (!module || !instrument_module(module, step->optimise, step->symbolic))
		return false;
	if (LLVMWriteBitcodeToFD(module, to, false, false)) {
		fprintf(stderr, "perdure-cc: cannot write bitcode\n");
		return false;
	}
	return true;
}

/* Options of the first step that must not act twice. Returns how many words to leave out. */
static size_t first_step_only(const char *argument)
{
	static const char *const alone[] = { "-sys-header-deps",  "-MP",   "-MG", "-MV", "-H",
					     "-module-file-deps", "-Eonly" };
	static const char *const with_value[] = {
		"-dependency-file", "-MT",          "-MQ",
		"-include",         "-include-pch", "-header-include-file",
		"-dependency-dot",  "-imacros"
	};

	for (size_t i = 0; i < sizeof(alone) / sizeof(*alone); i++)
		if (strcmp(argument, alone[i]) == 0)
			return 1;
	for (size_t i = 0; i < sizeof(with_value) / sizeof(*with_value); i++)
		if (strcmp(argument, with_value[i]) == 0)
			return 2;
	return 0;
}

static int generate_code(struct step *step, int fd)
{
	struct arguments command = { 0 };
	size_t last = step->given->count - 1;

	for (size_t i = 0; i <= last; i++) {
		size_t skip = i ? first_step_only(step->given->list[i]) : 0;

		if (skip) {
			i += skip - 1;
			continue;
		}
		/* Loops that hooks keep from being vectorised are not the user's business. */
		if (i == 2)
			arguments_add(&command, "-Wno-pass-failed");
		if (i == step->language)
			arguments_add(&command, "ir");
		else if (i == last)
			arguments_addf(&command, "/proc/self/fd/%d", fd);
		else
			arguments_add(&command, step->given->list[i]);
	}
	return arguments_run(&command, step->clang, STDERR_FILENO);
}

int main(int argc, char **argv)
{
	const char *clang = getenv("PERDURE_CLANG");
	struct arguments given = { 0 };
	struct step step = { .given = &given, .symbolic = getenv(SYMBOLIC_VARIABLE) };
	int bitcode, instrumented, status;

	(void)argc;
	step.clang = clang && *clang ? clang : PERDURE_CLANG_PATH;
	arguments_add(&given, step.clang);
	arguments_expand(&given, argv);
	if (given.count < 2 || strcmp(given.list[1], "-cc1") != 0)
		return run_unchanged(&step);
	examine(&step);
	if (!step.action)
		return run_unchanged(&step);
	bitcode = memory_file("perdure-bitcode");
	status = compile_to_bitcode(&step, bitcode);
	if (status)
		return status < 0 ? 3 : status;
	instrumented = memory_file("perdure-instrumented");
	if (!instrument_file(bitcode, instrumented, &step))
		return 1;
	close(bitcode);
	status = generate_code(&step, instrumented);
	return status < 0 ? 3 : status;
}
