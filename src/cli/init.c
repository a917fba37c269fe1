/* SPDX-License-Identifier: BSD-3-Clause */
/* perdure init: how a project is built with perdure-cc, and checked. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/commands.h"

struct project {
	const char *file; /* that tells what it is built with */
	const char *name;
	const char *build; /* commands, each in a line of its own */
	const char *note;
};

static const struct project projects[] = {
	{ "CMakeLists.txt", "CMake",
	  "cmake -S . -B build-perdure -DCMAKE_C_COMPILER=perdure-cc -DCMAKE_CXX_COMPILER=perdure-c++\n"
	  "cmake --build build-perdure\n",
	  "In CMakeLists.txt, find_package(Perdure) and perdure_add_test(NAME n COMMAND c PM pool) make a\n"
	  "test of it." },
	{ "meson.build", "Meson",
	  "CC=perdure-cc CXX=perdure-c++ meson setup build-perdure\n"
	  "meson compile -C build-perdure\n",
	  "In meson.build: test('crashes', find_program('perdure'), args: ['--pm', 'pool', prog])" },
	{ "configure", "autoconf", "./configure CC=perdure-cc CXX=perdure-c++\nmake\n", NULL },
	{ "configure.ac", "autoconf, without configure",
	  "autoreconf -i && ./configure CC=perdure-cc CXX=perdure-c++\nmake\n", NULL },
	{ "Makefile", "make", "make clean\nmake CC=perdure-cc CXX=perdure-c++\n", NULL },
	{ "makefile", "make", "make clean\nmake CC=perdure-cc CXX=perdure-c++\n", NULL },
	{ "GNUmakefile", "make", "make clean\nmake CC=perdure-cc CXX=perdure-c++\n", NULL },
};
enum { PROJECTS = sizeof(projects) / sizeof(*projects) };

static bool has_file(const char *directory, const char *name)
{
	char path[4096];
	struct stat status;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* A Makefile that was generated is not the one to change. */
static const struct project *find_project(const char *directory)
{
	for (int i = 0; i < PROJECTS; i++)
		if (has_file(directory, projects[i].file))
			return &projects[i];
	return NULL;
}

static void print_lines(const char *lines)
{
	while (*lines) {
		int length = (int)strcspn(lines, "\n");

		printf("  %.*s\n", length, lines);
		lines += length + (lines[length] == '\n');
	}
}

int command_init(char **words)
{
	const char *directory = *words ? *words : ".";
	const struct project *project;
	struct stat status;

	if (strcmp(directory, "--help") == 0) {
		printf("perdure init [DIRECTORY]\n\nPrints the lines to build a project with perdure-cc, and "
		       "to check it.\n");
		return EXIT_NOTHING_FOUND;
	}
	if (stat(directory, &status) < 0 || !S_ISDIR(status.st_mode)) {
		fprintf(stderr, "perdure: %s: %s\n", directory,
			errno ? strerror(errno) : "no directory");
		return EXIT_CANNOT_WORK;
	}
	project = find_project(directory);
	if (!project) {
		printf("There is no Makefile, CMakeLists.txt, meson.build or configure in %s. By hand:\n\n",
		       directory);
		print_lines("perdure-cc -O2 prog.c -o prog\nperdure --pm 'POOL' ./prog\n");
		return EXIT_NOTHING_FOUND;
	}
	printf("This project is built with %s:\n\n", project->name);
	print_lines(project->build);
	print_lines("perdure --pm 'POOL*' --html report.html ./PROG ARGS\n");
	printf("\nPOOL is the file that is persistent memory, as the program names it (PMDK's pools need no\n"
	       "--pm); --recover CMD names what runs after a crash, if it is not the same command again.\n");
	if (project->note)
		printf("%s\n", project->note);
	return EXIT_NOTHING_FOUND;
}
