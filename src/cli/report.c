/* SPDX-License-Identifier: BSD-3-Clause */
/* perdure report: another form of a result; perdure explain: what a kind of finding means. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "report/html.h"
#include "report/store_log.h"
#include "session/kinds.h"

static void print_report_help(void)
{
	printf("perdure report --html FILE RESULT.json\n"
	       "perdure report --import-pmemcheck LOG [--html FILE] [--json FILE]\n\n"
	       "Makes an HTML report of a result that was written with --json: one file, for a browser,\n"
	       "without network. Sources are read from where they are now.\n\n"
	       "With --import-pmemcheck, judges a store log of pmemcheck (--log-stores=yes) instead; without\n"
	       "--html and --json, what it finds is printed. Exit status: 1 if that is something.\n");
}

static int import(const char *log, const char *html, const char *file)
{
	json_t *json = store_log_judge(log);
	const json_t *finding;
	size_t i;

	if (!json) {
		fprintf(stderr, "perdure: %s: %s\n", log,
			errno == EINVAL ? "no store log of pmemcheck is in it (--log-stores=yes)"
					: strerror(errno));
		return EXIT_CANNOT_WORK;
	}
	if (file && json_dump_file(json, file, JSON_INDENT(2)) < 0) {
		fprintf(stderr, "perdure: cannot write %s\n", file);
		return EXIT_CANNOT_WORK;
	}
	json_array_foreach(json_object_get(json, "findings"), i, finding)
	{
		if (!html && !file)
			printf("%s: %s, %lld bytes at %s\n",
			       json_string_value(json_object_get(finding, "kind")),
			       json_string_value(json_object_get(finding, "message")),
			       json_integer_value(json_object_get(finding, "size")),
			       json_string_value(json_object_get(finding, "address")));
	}
	if (html && html_write(html, json) < 0) {
		fprintf(stderr, "perdure: cannot write %s: %s\n", html, strerror(errno));
		return EXIT_CANNOT_WORK;
	}
	return json_array_size(json_object_get(json, "findings")) ? EXIT_FINDINGS
								  : EXIT_NOTHING_FOUND;
}

int command_report(char **words)
{
	const char *html = NULL, *result = NULL, *log = NULL, *file = NULL;
	json_error_t error;
	json_t *json;

	for (; *words; words++) {
		if (strcmp(*words, "--help") == 0) {
			print_report_help();
			return EXIT_NOTHING_FOUND;
		}
		if (strcmp(*words, "--html") == 0 && words[1])
			html = *++words;
		else if (strncmp(*words, "--html=", 7) == 0)
			html = *words + 7;
		else if (strcmp(*words, "--import-pmemcheck") == 0 && words[1])
			log = *++words;
		else if (strcmp(*words, "--json") == 0 && words[1])
			file = *++words;
		else if (!result && (**words != '-' || !(*words)[1]))
			result = *words;
		else
			return fprintf(stderr, "perdure: report: what is %s?\n", *words),
			       EXIT_BAD_USAGE;
	}
	if (log && !result)
		return import(log, html, file);
	if (!html || !result) {
		fprintf(stderr, "perdure: perdure report --html FILE RESULT.json\n");
		return EXIT_BAD_USAGE;
	}
	json = strcmp(result, "-") == 0 ? json_loadf(stdin, 0, &error)
					: json_load_file(result, 0, &error);
	if (!json || !json_is_array(json_object_get(json, "findings"))) {
		fprintf(stderr, "perdure: %s is no result of perdure --json: %s\n", result,
			json ? "it has no findings" : error.text);
		return EXIT_CANNOT_WORK;
	}
	if (html_write(html, json) < 0) {
		fprintf(stderr, "perdure: cannot write %s: %s\n", html, strerror(errno));
		return EXIT_CANNOT_WORK;
	}
	json_decref(json);
	return EXIT_NOTHING_FOUND;
}

/* ---- explain ---- */

/* Lines that fit on a terminal. */
static void print_folded(const char *text)
{
	enum { WIDTH = 78 };
	size_t column = 0;

	while (*text) {
		size_t word = strcspn(text, " ");

		if (column && column + 1 + word > WIDTH) {
			putchar('\n');
			column = 0;
		}
		printf("%s%.*s", column ? " " : "", (int)word, text);
		column += word + (column > 0);
		text += word;
		text += strspn(text, " ");
	}
	putchar('\n');
}

static void explain(enum finding_kind kind)
{
	const struct kind_info *info = kind_info(kind);

	printf("%s (%s%s): %s\n\n", info->name, kind_severity(kind),
	       info->on_by_default ? "" : ", off by default: --enable", info->summary);
	print_folded(info->help);
}

int command_explain(char **words)
{
	enum finding_kind kind;

	if (!*words || strcmp(*words, "--help") == 0) {
		printf("perdure explain KIND\n\n");
		for (int i = 0; i < KIND_COUNT; i++)
			printf("  %-24s %s\n", kind_info(i)->name, kind_info(i)->summary);
		return EXIT_NOTHING_FOUND;
	}
	for (; *words; words++) {
		const char *names[KIND_COUNT + 1] = { 0 }, *better;

		kind = kind_by_name(*words);
		if (kind != KIND_COUNT) {
			explain(kind);
			if (words[1])
				putchar('\n');
			continue;
		}
		for (int i = 0; i < KIND_COUNT; i++)
			names[i] = kind_info(i)->name;
		better = options_suggest(*words, names);
		fprintf(stderr, "perdure: there is no kind of finding called %s%s%s%s\n", *words,
			better ? "; did you mean " : "", better ? better : "", better ? "?" : "");
		return EXIT_BAD_USAGE;
	}
	return EXIT_NOTHING_FOUND;
}
