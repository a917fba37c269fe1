/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perdure --manual COMMAND and perdure --completion SHELL: man pages, and what shells complete,
 * both from the table of options. The build writes them to files.
 */
#include "cli/manual.h"

#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "session/kinds.h"

static const struct page {
	const char *command, *summary, *usage, *text;
	unsigned options; /* enum options_command; 0: those are in the text */
} pages[] = {
	{ "check", "crash a program everywhere, and run its recovery", "[options] [--] PROG [ARGS]",
	  "Runs PROG, built with perdure-cc(1), once; finds every point at which a crash would leave "
	  "something else in persistent memory; and runs the recovery after each of them: PROG again, "
	  "or what --recover says. This is what perdure does without a command.",
	  OPTIONS_CHECK },
	{ "model", "the same with every value that a recovery could read",
	  "[options] [--] PROG [ARGS]",
	  "Like perdure-check(1), but exhaustive. If nothing is found and the result is complete, there "
	  "is nothing to find for this input and this schedule of threads.",
	  OPTIONS_MODEL },
	{ "run", "look at one run of a program", "[options] [--] PROG [ARGS]",
	  "Reports stores that are never written back or fenced, flushes and fences that do nothing, "
	  "and misuse of transactions. The program need not be built with perdure-cc(1).",
	  OPTIONS_RUN },
	{ "threads", "threads that act on what others have not yet persisted",
	  "[options] [--] PROG [ARGS]",
	  "Runs PROG, as it is, twice or more often: the first time to learn which of its instructions "
	  "touch persistent memory.",
	  OPTIONS_THREADS },
	{ "explore", "all paths that a program's inputs can lead it on",
	  "[options] [--] PROG [ARGS]",
	  "Runs PROG, built with perdure-cc --symbolic, with inputs that may be anything, and reports what "
	  "perdure-run(1) would, with an input for each finding; with --crash also what perdure-check(1) "
	  "would.",
	  OPTIONS_EXPLORE },
	{ "replay", "show a finding again",
	  "[--inputs DIR] ID | --from RESULT.json [--gdb | --image FILE] ID",
	  "A finding of perdure-explore(1) is run natively with its input. One of perdure-check(1) or "
	  "perdure-model(1) is taken from a JSON result, and run with its schedule and its crash: --gdb "
	  "stops in the recovery where it goes wrong, --image writes persistent memory as the crash "
	  "leaves it.",
	  0 },
	{ "report", "make an HTML report of a JSON result, or judge a store log of pmemcheck",
	  "--html FILE RESULT.json | --import-pmemcheck LOG [--html FILE] [--json FILE]",
	  "An HTML report is one file for a browser, without network.", 0 },
	{ "fix", "changes of the source that cure findings",
	  "[--apply] [--verify BUILD] RESULT.json [ID...]",
	  "Prints a diff, as far as a fix is certain. --apply changes the files; --verify also builds "
	  "with the shell command BUILD and runs the analysis again: a change that cures nothing, or "
	  "makes new findings, is taken back.",
	  0 },
	{ "init", "how a project is built and checked", "[DIRECTORY]",
	  "Looks at the build system of a project and prints the lines to build and to check it.",
	  0 },
	{ "explain", "what a kind of finding means", "[KIND...]", "Prints what to do about it.",
	  0 },
};
enum { PAGES = sizeof(pages) / sizeof(*pages) };

/* Dashes and backslashes mean something to troff. */
static void print_text(const char *text)
{
	for (; *text; text++) {
		if (*text == '-')
			fputs("\\-", stdout);
		else if (*text == '\\')
			fputs("\\e", stdout);
		else
			putchar(*text);
	}
}

static void print_option(const struct option_info *option, void *unused)
{
	(void)unused;
	printf(".TP\n.B ");
	print_text(option->name);
	if (option->value) {
		printf("%s", *option->value == '[' ? "\\fR" : " \\fI");
		print_text(option->value);
		printf("\\fR");
	}
	putchar('\n');
	print_text(option->help);
	putchar('\n');
}

static void print_page(const struct page *page)
{
	printf(".TH PERDURE-%s 1 \"\" \"perdure %s\" \"Perdure\"\n.SH NAME\nperdure-%s \\- ",
	       page->command, PERDURE_VERSION, page->command);
	print_text(page->summary);
	printf("\n.SH SYNOPSIS\n.B perdure %s\n", page->command);
	print_text(page->usage);
	printf("\n.SH DESCRIPTION\n");
	print_text(page->text);
	putchar('\n');
	if (page->options) {
		printf(".SH OPTIONS\n");
		options_each(page->options, print_option, NULL);
	}
	printf(".SH EXIT STATUS\n0 nothing was found, 1 findings, 2 bad usage, 3 the work could not be "
	       "done, 4 a budget ended it and nothing was found.\n"
	       ".SH SEE ALSO\n.BR perdure (1)\n");
}

static void print_overview(void)
{
	printf(".TH PERDURE 1 \"\" \"perdure %s\" \"Perdure\"\n.SH NAME\nperdure \\- crash\\-consistency "
	       "bugs in programs that use persistent memory\n.SH SYNOPSIS\n"
	       ".B perdure\n[command] [options] [\\-\\-] PROG [ARGS]\n.SH DESCRIPTION\n"
	       "Without a command, perdure checks a program that was built with perdure\\-cc.\n"
	       ".SH COMMANDS\n",
	       PERDURE_VERSION);
	for (int i = 0; i < PAGES; i++) {
		printf(".TP\n.BR perdure\\-%s (1)\n", pages[i].command);
		print_text(pages[i].summary);
		putchar('\n');
	}
	printf(".SH KINDS OF FINDINGS\n");
	for (int kind = 0; kind < KIND_COUNT; kind++) {
		printf(".TP\n.B ");
		print_text(kind_info(kind)->name);
		putchar('\n');
		print_text(kind_info(kind)->summary);
		putchar('\n');
	}
	printf(".SH EXAMPLE\n.nf\nperdure\\-cc \\-O2 prog.c \\-o prog\nperdure \\-\\-pm 'pool*' ./prog\n.fi\n");
}

static void print_compiler_page(void)
{
	printf(".TH PERDURE-CC 1 \"\" \"perdure %s\" \"Perdure\"\n.SH NAME\nperdure\\-cc, perdure\\-c++ \\- "
	       "build programs for perdure\n.SH SYNOPSIS\n.B perdure\\-cc\n[\\-\\-symbolic] compiler "
	       "options\n.SH DESCRIPTION\nClang, with hooks where a program may touch persistent memory. All "
	       "of clang's options are understood, and what gcc accepts where it can be. With "
	       "\\-\\-symbolic the program can be explored with perdure\\-explore(1).\n"
	       ".SH SEE ALSO\n.BR perdure (1)\n",
	       PERDURE_VERSION);
}

int command_manual(char **words)
{
	if (*words && strcmp(*words, "perdure") == 0) {
		print_overview();
		return EXIT_NOTHING_FOUND;
	}
	if (*words && strcmp(*words, "cc") == 0) {
		print_compiler_page();
		return EXIT_NOTHING_FOUND;
	}
	for (int i = 0; *words && i < PAGES; i++)
		if (strcmp(*words, pages[i].command) == 0) {
			print_page(&pages[i]);
			return EXIT_NOTHING_FOUND;
		}
	return EXIT_BAD_USAGE;
}

/* ---- completion ---- */

static void print_name(const struct option_info *option, void *unused)
{
	(void)unused;
	printf(" %s", option->name);
}

static void print_zsh_option(const struct option_info *option, void *unused)
{
	(void)unused;
	printf("      '%s[", option->name);
	for (const char *p = option->help; *p; p++)
		if (*p == '\'')
			printf("'\\''");
		else if (*p == '[' || *p == ']' || *p == ':')
			printf("\\%c", *p);
		else
			putchar(*p);
	printf("]%s'\n", !option->value                  ? ""
			 : strstr(option->value, "FILE") ? ":file:_files"
							 : ":value:");
}

static void complete_bash(void)
{
	printf("# bash completion for perdure\n_perdure()\n{\n"
	       "\tlocal word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} i options=\n"
	       "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
	       "\t\t[[ ${COMP_WORDS[i]} == -- ]] && { COMPREPLY=($(compgen -f -- \"$word\")); return; }\n"
	       "\tdone\n\tcase $command in\n");
	for (int i = 0; i < PAGES; i++) {
		printf("\t%s) options='", pages[i].command);
		if (pages[i].options)
			options_each(pages[i].options, print_name, NULL);
		else if (strcmp(pages[i].command, "replay") == 0)
			printf(" --inputs --from --gdb --image");
		else if (strcmp(pages[i].command, "fix") == 0)
			printf(" --apply --verify");
		else if (strcmp(pages[i].command, "report") == 0)
			printf(" --html --import-pmemcheck --json");
		else if (strcmp(pages[i].command, "explain") == 0)
			for (int kind = 0; kind < KIND_COUNT; kind++)
				printf(" %s", kind_info(kind)->name);
		printf("' ;;\n");
	}
	printf("\t*) options='");
	options_each(OPTIONS_CHECK, print_name, NULL);
	printf("' ;;\n\tesac\n\tif ((COMP_CWORD == 1)); then\n\t\tCOMPREPLY=($(compgen -W \"");
	for (int i = 0; i < PAGES; i++)
		printf("%s ", pages[i].command);
	printf("$options\" -- \"$word\") $(compgen -f -- \"$word\"))\n"
	       "\telif [[ $word == -* || $command == explain ]]; then\n"
	       "\t\tCOMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
	       "\telse\n\t\tCOMPREPLY=($(compgen -f -- \"$word\"))\n\tfi\n}\n"
	       "complete -o filenames -F _perdure perdure\n");
}

static void complete_zsh(void)
{
	printf("#compdef perdure\n_perdure() {\n  local -a commands\n  commands=(\n");
	for (int i = 0; i < PAGES; i++)
		printf("    '%s:%s'\n", pages[i].command,
		       strchr(pages[i].summary, '\'') ? "" : pages[i].summary);
	printf("  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    _files\n    return\n"
	       "  fi\n  case $words[2] in\n");
	for (int i = 0; i < PAGES; i++) {
		if (!pages[i].options)
			continue;
		printf("    %s) _arguments \\\n", pages[i].command);
		printf("      '*:program:_files' \\\n      $perdure_%s ;;\n", pages[i].command);
	}
	printf("    *) _files ;;\n  esac\n}\n");
	for (int i = 0; i < PAGES; i++)
		if (pages[i].options) {
			printf("typeset -ga perdure_%s\nperdure_%s=(\n", pages[i].command,
			       pages[i].command);
			options_each(pages[i].options, print_zsh_option, NULL);
			printf(")\n");
		}
	printf("compdef _perdure perdure\n");
}

int command_completion(char **words)
{
	if (*words && strcmp(*words, "bash") == 0)
		complete_bash();
	else if (*words && strcmp(*words, "zsh") == 0)
		complete_zsh();
	else
		return EXIT_BAD_USAGE;
	return EXIT_NOTHING_FOUND;
}
