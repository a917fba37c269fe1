/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/models.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>

#include "cli/commands.h"
#include "drive/target.h"
#include "library/parse.h"

static bool load(struct library_table *table, const char *path)
{
	char error[1024];

	if (library_parse_file(table, path, error, sizeof(error)) == 0)
		return true;
	fprintf(stderr, "perdure: %s\n", error);
	return false;
}

static int load_shipped(struct library_table *table)
{
	char prefix[PATH_MAX], pattern[PATH_MAX + 64];
	int status = 0;
	glob_t files;

	if (!target_own_prefix(prefix, sizeof(prefix)))
		return EXIT_CANNOT_WORK;
	snprintf(pattern, sizeof(pattern), "%s/share/perdure/models/*.model", prefix);
	if (glob(pattern, 0, NULL, &files) != 0) {
		fprintf(stderr, "perdure: no library models at %s; is the installation complete?\n",
			pattern);
		return EXIT_CANNOT_WORK;
	}
	for (size_t i = 0; i < files.gl_pathc && !status; i++)
		if (!load(table, files.gl_pathv[i]))
			status = EXIT_CANNOT_WORK;
	globfree(&files);
	return status;
}

/* --verifier: a function of any object, whatever its arguments. */
static bool add_verifier(struct library_table *table, const char *name)
{
	char text[2 * SESSION_PATH], error[1024];

	snprintf(text, sizeof(text), "library *\n\n%s(...)\n\tverify-begin\n\tcall\n\tverify-end\n",
		 name);
	if (library_parse_text(table, "--verifier", text, error, sizeof(error)) == 0)
		return true;
	fprintf(stderr, "perdure: %s\n", error);
	return false;
}

int models_load(struct library_table *table, const struct options *options)
{
	int status;

	library_table_init(table);
	status = load_shipped(table);
	for (unsigned i = 0; i < options->verifiers && !status; i++)
		if (!add_verifier(table, options->verifier[i]))
			status = EXIT_BAD_USAGE;
	library_mark_shipped(table);
	for (unsigned i = 0; i < options->lib_models && !status; i++)
		if (!load(table, options->lib_model[i]))
			status = EXIT_BAD_USAGE;
	return status;
}
