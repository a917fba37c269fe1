/* SPDX-License-Identifier: BSD-3-Clause */
/* The perdure command: a table of subcommands. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/manual.h"
#include "cli/options.h"
#include "drive/target.h"

static int command_cc(char **words)
{
	return command_compile("perdure-cc", words);
}

static int command_cxx(char **words)
{
	return command_compile("perdure-c++", words);
}

static int command_version(char **words)
{
	(void)words;
	printf("perdure %s\n", PERDURE_VERSION);
	return EXIT_NOTHING_FOUND;
}

static int command_help(char **words);

static const struct command {
	const char *name;
	int (*run)(char **words);
	const char *help; /* null: not for people */
} commands[] = {
	{ "check", command_check,
	  "run a program, and its recovery after every crash (the default)" },
	{ "model", command_model, "the same with every value that a recovery could read" },
	{ "threads", command_threads,
	  "run a program and report threads that act on what others have not yet persisted" },
	{ "explore", command_explore,
	  "run all paths that symbolic inputs can take, and report the same as run" },
	{ "replay", command_replay, "run again, natively, with the input of a finding of explore" },
	{ "report", command_report, "make an HTML report of a JSON result" },
	{ "fix", command_fix, "print, make or try changes of the source that cure findings" },
	{ "init", command_init, "print the lines to build and check a project" },
	{ "explain", command_explain, "say what a kind of finding means, and what to do" },
	{ "run", command_run, "run a program and report missing and extra flushes and fences" },
	{ "cc", command_cc, "compile C for analysis; also as perdure-cc" },
	{ "c++", command_cxx, "compile C++ for analysis; also as perdure-c++" },
	{ "help", command_help, "show this text" },
	{ "--help", command_help, NULL },
	{ "-h", command_help, NULL },
	{ "version", command_version, "print the version" },
	{ "--version", command_version, NULL },
	{ "--watch", command_watch, NULL },
	{ "--send", command_send, NULL },
	{ "--manual", command_manual, NULL },
	{ "--completion", command_completion, NULL },
};
enum { COMMANDS = sizeof(commands) / sizeof(*commands) };

static int command_help(char **words)
{
	(void)words;
	printf("perdure finds crash-consistency bugs in programs that use persistent memory.\n\n"
	       "  perdure-cc -o prog prog.c          build with perdure-cc or perdure-c++\n"
	       "  perdure --pm 'POOL' ./prog         crash it everywhere, and read the report\n\n"
	       "Commands:\n");
	for (int i = 0; i < COMMANDS; i++)
		if (commands[i].help)
			printf("  %-9s %s\n", commands[i].name, commands[i].help);
	printf("\nOptions (before the program; not all are for run):\n");
	options_help(stdout, OPTIONS_RUN | OPTIONS_CHECK | OPTIONS_MODEL | OPTIONS_THREADS |
				     OPTIONS_EXPLORE);
	printf("\nExit status: 0 nothing found, 1 findings, 2 bad usage, 3 could not do the work,\n"
	       "4 a budget ended the work and nothing was found.\n");
	return EXIT_NOTHING_FOUND;
}

static int unknown_command(const char *word)
{
	const char *names[COMMANDS + 1] = { 0 }, *better;
	int count = 0;

	for (int i = 0; i < COMMANDS; i++)
		if (commands[i].help)
			names[count++] = commands[i].name;
	better = options_suggest(word, names);
	fprintf(stderr, "perdure: unknown command %s", word);
	if (better)
		fprintf(stderr, "; did you mean %s?", better);
	fprintf(stderr, " (and there is no program of that name)\n");
	return EXIT_BAD_USAGE;
}

int main(int argc, char **argv)
{
	char *program;

	target_prepare_process();
	if (argc < 2) {
		fprintf(stderr, "perdure: what shall I do? perdure [options] PROG [ARGS], or "
				"perdure --help\n");
		return EXIT_BAD_USAGE;
	}
	for (int i = 0; i < COMMANDS; i++)
		if (strcmp(commands[i].name, argv[1]) == 0)
			return commands[i].run(argv + 2);
	/* No command: check. */
	program = argv[1][0] == '-' ? NULL : target_find_program(argv[1]);
	if (program || argv[1][0] == '-') {
		free(program);
		return command_check(argv + 1);
	}
	return unknown_command(argv[1]);
}
