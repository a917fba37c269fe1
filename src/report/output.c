/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How many bytes the UTF-8 character at p has; 0 if it is none. */
static size_t utf8_length(const unsigned char *p)
{
	size_t length = *p < 0x80       ? 1
			: *p >> 5 == 6  ? 2
			: *p >> 4 == 14 ? 3
			: *p >> 3 == 30 ? 4
					: 0;

	for (size_t i = 1; i < length; i++)
		if (p[i] >> 6 != 2)
			return 0;
	return length;
}

char *utf8_repaired(const char *text)
{
	char *good = malloc(strlen(text) * 3 + 1), *out = good;

	if (!good)
		abort();
	while (*text) {
		size_t length = utf8_length((const unsigned char *)text);

		if (length)
			memcpy(out, text, length);
		else
			memcpy(out, "\xef\xbf\xbd", 3);
		out += length ? length : 3;
		text += length ? length : 1;
	}
	*out = 0;
	return good;
}

json_t *json_text(const char *text)
{
	json_t *value = text ? json_string(text) : json_null();
	char *good;

	if (value)
		return value;
	good = utf8_repaired(text);
	value = json_string(good);
	free(good);
	return value ? value : json_string("?");
}

FILE *output_open(const char *path)
{
	return strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
}

int output_close(FILE *out, int status)
{
	if (fflush(out) == EOF || ferror(out))
		status = -1;
	if (out != stdout && fclose(out) == EOF)
		status = -1;
	if (status < 0 && !errno)
		errno = EIO;
	return status;
}

int json_write_file(const char *path, json_t *value)
{
	FILE *out = output_open(path);
	int status = -1;

	if (out) {
		status = value ? json_dumpf(value, out, JSON_INDENT(1)) : -1;
		fputc('\n', out);
		status = output_close(out, status);
	}
	json_decref(value);
	return status;
}

json_t *words_json(char *const *words)
{
	json_t *list = json_array();

	for (; words && *words; words++)
		json_array_append_new(list, json_text(*words));
	return list;
}
