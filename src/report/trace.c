/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/trace.h"

#include <stdio.h>
#include <string.h>

#include "report/symbols.h"
#include "session/trace.h"

static const char *const kinds[] = { "load", "store", "failed-cas", "flush", "fence", "persist" };
static const char *const flush_names[] = { "?", "clflush", "clflushopt", "clwb" };
static const char *const fence_names[] = {
	"?", "sfence", "mfence", "lfence", "rmw", "acquire", "release",
};
static const char *const orders[] = { "",         " relaxed", " acquire", " release",
				      " acq_rel", " seq_cst", "",         "" };

static void print_flags(FILE *out, uint32_t flags)
{
	static const struct {
		uint32_t flag;
		const char *name;
	} names[] = {
		{ PERDURE_ATOMIC, " atomic" },  { PERDURE_VOLATILE, " volatile" },
		{ PERDURE_NONTEMPORAL, " nt" }, { PERDURE_RMW, " rmw" },
		{ PERDURE_BULK, " bulk" },      { PERDURE_ASM, " asm" },
	};

	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (flags & names[i].flag)
			fputs(names[i].name, out);
	fputs(orders[flags >> PERDURE_ORDER_SHIFT & 7], out);
}

static void print_record(FILE *out, const struct trace_record *record, struct session *session)
{
	struct site site = { 0 };

	fprintf(out, "%u %s", record->thread, kinds[record->kind]);
	if (record->kind == TRACE_FLUSH)
		fprintf(out, " %s", flush_names[record->detail]);
	else if (record->kind == TRACE_FENCE)
		fprintf(out, " %s", fence_names[record->detail]);
	if (record->kind != TRACE_FENCE)
		fprintf(out, " 0x%lx", record->address);
	if (record->size)
		fprintf(out, " %lu", record->size);
	if (record->kind <= TRACE_FAILED_CAS)
		print_flags(out, record->detail);
	if (record->stack)
		symbols_resolve(session, record->stack, &site);
	if (site.frames && site.frame[0].file)
		fprintf(out, " @ %s:%u %s", site.frame[0].file, site.frame[0].line,
			site.frame[0].function);
	fputc('\n', out);
}

int trace_to_text(const char *records, const char *text, struct session *session)
{
	FILE *in = fopen(records, "r");
	FILE *out = strcmp(text, "-") == 0 ? stdout : fopen(text, "w");
	struct trace_record record;
	int status = 0;

	if (!in || !out)
		status = -1;
	while (status == 0 && fread(&record, sizeof(record), 1, in) == 1)
		print_record(out, &record, session);
	if (in)
		fclose(in);
	if (out && (ferror(out) | (out == stdout ? fflush(out) : fclose(out))))
		status = -1;
	return status;
}
