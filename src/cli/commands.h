/* SPDX-License-Identifier: BSD-3-Clause */
/* Subcommands of perdure: each gets the words after its name, and returns the exit status. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

enum exit_status {
	EXIT_NOTHING_FOUND = 0,
	EXIT_FINDINGS = 1,
	EXIT_BAD_USAGE = 2,
	EXIT_CANNOT_WORK = 3,
	EXIT_BUDGET = 4,
};

int command_run(char **words);
int command_check(char **words);
int command_model(char **words);
int command_threads(char **words);
int command_explore(char **words);
int command_replay(char **words);
int command_report(char **words);
int command_explain(char **words);
int command_fix(char **words);
int command_init(char **words);
int command_compile(const char *tool, char **words);
/* Hidden: started by the runtime in a program that has PERDURE_OPTIONS. */
int command_watch(char **words);
/* Hidden: the client of perdure replay. */
int command_send(char **words);

#endif
