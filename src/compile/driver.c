/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perdure-cc, perdure-c++: clang with the instrumenter in the middle.
 *
 * clang's own driver does all the work of a compiler driver. It is told that its executable is
 * lib/perdure/perdure-cc (through argv[0]), so every compile step it starts comes there, with all
 * options resolved; see cc1.c. Nothing here needs to understand sources, outputs or dependency
 * files.
 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compile/arguments.h"

struct request {
	bool links;     /* no option ends the work before the linker */
	bool partial;   /* ld -r */
	bool is_static; /* -static: impossible, the runtime is a shared object */
	bool inputs;
	bool cxx;
	bool symbolic;
};

/*
 * Link-time optimisation would need a linker plug-in and gains nothing here. Stripping would take
 * the lines out of the report.
 */
static bool is_dropped(const char *argument)
{
	return strncmp(argument, "-flto", 5) == 0 || strcmp(argument, "-fno-lto") == 0 ||
	       strcmp(argument, "-s") == 0 || strcmp(argument, "-Wl,-s") == 0 ||
	       strcmp(argument, "-Wl,-S") == 0 || strcmp(argument, "-Wl,--strip-all") == 0 ||
	       strncmp(argument, "-fembed-bitcode", 15) == 0 ||
	       strncmp(argument, "-Wl,-plugin-opt", 15) == 0 ||
	       strcmp(argument, "-ffat-lto-objects") == 0 ||
	       strcmp(argument, "-fno-fat-lto-objects") == 0 ||
	       strcmp(argument, "-fuse-linker-plugin") == 0 ||
	       strcmp(argument, "-fno-use-linker-plugin") == 0 ||
	       strcmp(argument, "-fwhole-program") == 0 ||
	       strcmp(argument, "-fwhole-program-vtables") == 0;
}

static bool stops_before_link(const char *argument)
{
	static const char *const options[] = {
		"-c",        "-S",        "-E",          "-M", "-MM", "-fsyntax-only",
		"--analyze", "-emit-ast", "-verify-pch",
	};

	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
		if (strcmp(argument, options[i]) == 0)
			return true;
	return false;
}

/* A header is compiled by itself, and nothing is linked. */
static bool is_header(const char *argument)
{
	static const char *const endings[] = { ".h", ".hh", ".hpp", ".hxx", ".H", ".h++" };
	size_t length = strlen(argument);

	for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
		size_t ending = strlen(endings[i]);

		if (argument[0] != '-' && length > ending &&
		    strcmp(argument + length - ending, endings[i]) == 0)
			return true;
	}
	return strcmp(argument, "c-header") == 0 || strcmp(argument, "c++-header") == 0 ||
	       strcmp(argument, "-xc-header") == 0 || strcmp(argument, "-xc++-header") == 0;
}

static bool takes_value(const char *argument)
{
	return strcmp(argument, "-include") == 0 || strcmp(argument, "-imacros") == 0 ||
	       strcmp(argument, "-MF") == 0 || strcmp(argument, "-MT") == 0 ||
	       strcmp(argument, "-MQ") == 0 || strcmp(argument, "-o") == 0 ||
	       strcmp(argument, "-D") == 0 || strcmp(argument, "-I") == 0;
}

static void examine(const struct arguments *user, struct request *request)
{
	request->links = true;
	for (size_t i = 0; i < user->count; i++) {
		const char *argument = user->list[i];

		if (stops_before_link(argument) ||
		    (is_header(argument) && (i == 0 || !takes_value(user->list[i - 1]))))
			request->links = false;
		else if (strcmp(argument, "-r") == 0 || strcmp(argument, "-Wl,-r") == 0)
			request->partial = true;
		else if (strcmp(argument, "-static") == 0 || strcmp(argument, "--static") == 0 ||
			 strcmp(argument, "-static-pie") == 0)
			request->is_static = true;
		else if (strcmp(argument, "--symbolic") == 0)
			request->symbolic = true;
		if (argument[0] != '-' || strcmp(argument, "-") == 0 ||
		    strncmp(argument, "-l", 2) == 0)
			request->inputs = true;
	}
}

/* What headers would do by tables, or leave to a library that has no expressions. */
static void add_symbolic_options(struct arguments *out, const char *prefix)
{
	setenv(SYMBOLIC_VARIABLE, "1", 1);
	arguments_add(out, "--start-no-unused-arguments");
	arguments_add(out, "-D__NO_CTYPE");
	arguments_add(out, "-include");
	arguments_addf(out, "%s/include/perdure/compat/perdure-symbolic.h", prefix);
	arguments_add(out, "--end-no-unused-arguments");
}

static void add_compile_options(struct arguments *out, const char *prefix)
{
	arguments_add(out, "--start-no-unused-arguments");
	arguments_add(out, "-gdwarf-aranges"); /* lets a report find a unit by address */
	arguments_add(out, "-D__PERDURE__=1");
	arguments_add(out, "-idirafter");
	arguments_addf(out, "%s/include", prefix);
	arguments_add(out, "-idirafter");
	arguments_addf(out, "%s/include/perdure/compat", prefix);
	arguments_add(out, "--end-no-unused-arguments");
}

/* First among the libraries: the runtime's functions must be found before libc's and libpmem's. */
static void add_link_options(struct arguments *out, const char *prefix)
{
	arguments_add(out, "--start-no-unused-arguments");
	arguments_add(out, "-Wl,-z,now"); /* lazy binding would clobber a register of the hooks */
	arguments_add(out, "-Wl,--push-state,--no-as-needed");
	arguments_addf(out, "%s/lib/perdure/libperdure.so", prefix);
	arguments_add(out, "-Wl,--pop-state");
	arguments_addf(out, "-Wl,-rpath,%s/lib/perdure", prefix);
	arguments_add(out, "--end-no-unused-arguments");
}

static void build_command(struct arguments *out, const struct arguments *user, const char *prefix,
			  const struct request *request)
{
	arguments_addf(out, "%s/lib/perdure/perdure-cc", prefix);
	arguments_add(out, "-no-canonical-prefixes");
	arguments_add(out, "-fno-integrated-cc1");
	arguments_add(out, "-resource-dir");
	arguments_add(out, PERDURE_CLANG_RESOURCES);
	if (request->cxx)
		arguments_add(out, "--driver-mode=g++");
	add_compile_options(out, prefix);
	if (request->symbolic)
		add_symbolic_options(out, prefix);
	if (request->links && request->inputs && !request->partial)
		add_link_options(out, prefix);
	for (size_t i = 0; i < user->count; i++)
		if (strcmp(user->list[i], "--symbolic") != 0 && !is_dropped(user->list[i]))
			arguments_add(out, user->list[i]);
	if (request->symbolic && request->links && request->inputs && !request->partial)
		arguments_addf(out, "-Wl,%s/lib/perdure/libperdure-libc.a", prefix);
	/* Last, so that they win: backtraces need lines, frame pointers and real calls. */
	arguments_add(out, "--start-no-unused-arguments");
	arguments_add(out, "-g");
	arguments_add(out, "-gno-split-dwarf");
	arguments_add(out, "-fno-omit-frame-pointer");
	arguments_add(out, "-mno-omit-leaf-frame-pointer");
	arguments_add(out, "-fno-optimize-sibling-calls");
	/* LLVM replaces the checked functions by plain stores, even where it must not. */
	arguments_add(out, "-U_FORTIFY_SOURCE");
	arguments_add(out, "--end-no-unused-arguments");
}

static bool is_cxx(const char *name)
{
	size_t length = strlen(name);

	return length >= 2 && strcmp(name + length - 2, "++") == 0;
}

int main(int argc, char **argv)
{
	struct arguments user = { 0 }, command = { 0 };
	struct request request = { 0 };
	const char *clang = getenv("PERDURE_CLANG");
	char *prefix = arguments_own_directory();
	char *slash = prefix ? strrchr(prefix, '/') : NULL;

	if (!slash || argc < 1) {
		fprintf(stderr, "perdure-cc: cannot find my own directory (is /proc mounted?)\n");
		return 3;
	}
	*slash = 0;
	if (strchr(prefix, ':')) {
		fprintf(stderr,
			"perdure-cc: error: programs cannot find their runtime in %s: move Perdure to a "
			"path without a colon\n",
			prefix);
		return 3;
	}
	request.cxx = is_cxx(argv[0]);
	arguments_expand(&user, argv);
	examine(&user, &request);
	if (request.links && request.is_static) {
		fprintf(stderr,
			"perdure-cc: error: -static is not possible: the runtime is a shared "
			"library; link dynamically (drop -static) to analyse this program\n");
		return 1;
	}
	build_command(&command, &user, prefix, &request);
	execv(clang && *clang ? clang : PERDURE_CLANG_PATH, command.list);
	fprintf(stderr, "perdure-cc: cannot run %s: %s (install clang 19 or set PERDURE_CLANG)\n",
		clang && *clang ? clang : PERDURE_CLANG_PATH, strerror(errno));
	return 3;
}
