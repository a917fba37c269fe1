/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/html.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/output.h"
#include "report/source.h"
#include "report/write.h"

enum { AROUND = 4 }; /* lines of source before and after the one that is shown */

#define PIECE(name) extern const char html_##name[], html_##name##_end[]
PIECE(head);
PIECE(style);
PIECE(body);
PIECE(script);

/* ---- what the page shows besides the result ---- */

static void add_lines(json_t *sources, const json_t *site)
{
	const char *file = json_string_value(json_object_get(site, "file"));
	int line = (int)json_integer_value(json_object_get(site, "line"));
	json_t *lines = file ? json_object_get(sources, file) : NULL;
	char number[16];

	if (!file || line < 1)
		return;
	if (!lines) {
		lines = json_object();
		json_object_set_new(sources, file, lines);
	}
	for (int i = line > AROUND ? line - AROUND : 1; i <= line + AROUND; i++) {
		const char *text = source_line(file, (unsigned)i);

		snprintf(number, sizeof(number), "%d", i);
		if (text && !json_object_get(lines, number))
			json_object_set_new(lines, number, json_text(text));
	}
	if (!json_object_size(lines))
		json_object_del(sources, file);
}

static json_t *sources_of(const json_t *result)
{
	json_t *sources = json_object(), *finding, *site;
	size_t i, k;

	json_array_foreach(json_object_get(result, "findings"), i, finding)
	{
		json_array_foreach(json_object_get(finding, "sites"), k, site)
			add_lines(sources, site);
		add_lines(sources, json_object_get(finding, "crash_point"));
	}
	return sources;
}

static json_t *explanations(void)
{
	json_t *list = json_object();

	for (int kind = 0; kind < KIND_COUNT; kind++)
		json_object_set_new(list, kind_info(kind)->name, json_text(kind_info(kind)->help));
	return list;
}

/* ---- writing ---- */

static void write_piece(FILE *out, const char *start, const char *end)
{
	fwrite(start, 1, (size_t)(end - start), out);
}

/* Inside of a script element: nothing in it may look like its end. */
static int write_data(const char *bytes, size_t size, void *out)
{
	for (size_t i = 0; i < size; i++) {
		if (bytes[i] == '<')
			fputs("\\u003c", out);
		else
			fputc(bytes[i], out);
	}
	return 0;
}

int html_write(const char *path, json_t *result)
{
	FILE *out = strcmp(path, "-") == 0 ? stdout : fopen(path, "we");

	if (!out)
		return -1;
	json_object_set_new(result, "sources", sources_of(result));
	json_object_set_new(result, "explanations", explanations());
	write_piece(out, html_head, html_head_end);
	write_piece(out, html_style, html_style_end);
	write_piece(out, html_body, html_body_end);
	json_dump_callback(result, write_data, out, JSON_COMPACT);
	fprintf(out, "\n</script>\n<script>\n");
	write_piece(out, html_script, html_script_end);
	fprintf(out, "</script>\n</body>\n</html>\n");
	if (ferror(out)) {
		errno = EIO;
		return -1;
	}
	return out == stdout ? fflush(out) : fclose(out);
}

int write_html(const char *path, const struct result *result)
{
	json_t *json = result_json(result);
	int status = html_write(path, json);

	json_decref(json);
	return status;
}
