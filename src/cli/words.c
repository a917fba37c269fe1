/* SPDX-License-Identifier: BSD-3-Clause */
/* Words: split as a shell does, and what may have been meant by one. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"

static unsigned smallest(unsigned a, unsigned b, unsigned c)
{
	unsigned m = a < b ? a : b;

	return m < c ? m : c;
}

/* Levenshtein distance of short words. */
static unsigned distance(const char *a, const char *b)
{
	enum { LONGEST = 63 };
	unsigned row[LONGEST + 1], n = strlen(a), m = strlen(b);

	if (n > LONGEST || m > LONGEST)
		return LONGEST;
	for (unsigned j = 0; j <= m; j++)
		row[j] = j;
	for (unsigned i = 1; i <= n; i++) {
		unsigned diagonal = row[0];

		row[0] = i;
		for (unsigned j = 1; j <= m; j++) {
			unsigned above = row[j];

			row[j] = smallest(row[j] + 1, row[j - 1] + 1,
					  diagonal + (a[i - 1] != b[j - 1]));
			diagonal = above;
		}
	}
	return row[m];
}

const char *options_suggest(const char *word, const char *const *candidates)
{
	const char *best = NULL;
	unsigned least = strlen(word) / 3 + 2;

	for (; *candidates; candidates++) {
		unsigned d = distance(word, *candidates);

		if (d < least) {
			least = d;
			best = *candidates;
		}
	}
	return best;
}

char **options_split(const char *text)
{
	size_t count = 0;
	char **words = calloc(strlen(text) / 2 + 2, sizeof(*words));
	char *copy = strdup(text), *out = copy;

	if (!words || !copy)
		abort();
	while (*text) {
		char quote = 0;

		while (isspace((unsigned char)*text))
			text++;
		if (!*text)
			break;
		words[count++] = out;
		for (; *text && (quote || !isspace((unsigned char)*text)); text++) {
			if (quote ? *text == quote : *text == '"' || *text == '\'')
				quote = quote ? 0 : *text;
			else
				*out++ = *text;
		}
		if (quote) {
			free(copy);
			free(words);
			return NULL;
		}
		text += *text != 0;
		*out++ = 0;
	}
	return words;
}
