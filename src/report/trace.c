/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/trace.h"

#include "report/symbols.h"

static const char *const kinds[] = {
	[PERDURE_EVENT_LOAD] = "load",
	[PERDURE_EVENT_STORE] = "store",
	[PERDURE_EVENT_FAILED_CAS] = "failed-cas",
	[PERDURE_EVENT_FLUSH] = "flush",
	[PERDURE_EVENT_FENCE] = "fence",
	[PERDURE_EVENT_PERSIST] = "persist",
	[PERDURE_EVENT_TX_BEGIN] = "tx-begin",
	[PERDURE_EVENT_TX_ADD] = "tx-add",
	[PERDURE_EVENT_TX_COMMIT] = "tx-commit",
	[PERDURE_EVENT_TX_ABORT] = "tx-abort",
	[PERDURE_EVENT_TX_END] = "tx-end",
	[PERDURE_EVENT_ALLOC] = "alloc",
	[PERDURE_EVENT_FREE] = "free",
	[PERDURE_EVENT_LOCK] = "lock",
	[PERDURE_EVENT_UNLOCK] = "unlock",
	[PERDURE_EVENT_MAP] = "map",
	[PERDURE_EVENT_UNMAP] = "unmap",
	[PERDURE_EVENT_VOLATILE] = "volatile",
	[PERDURE_EVENT_PUBLISH] = "publish",
};
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

static bool has_address(uint32_t kind)
{
	return kind != PERDURE_EVENT_FENCE && kind != PERDURE_EVENT_TX_COMMIT &&
	       kind != PERDURE_EVENT_TX_ABORT && kind != PERDURE_EVENT_TX_END &&
	       kind != PERDURE_EVENT_PUBLISH;
}

void trace_print(FILE *out, const struct perdure_event *event, const struct session *session)
{
	struct site site = { 0 };

	fprintf(out, "%u %s", event->thread, kinds[event->kind]);
	if (event->kind == PERDURE_EVENT_FLUSH)
		fprintf(out, " %s", flush_names[event->detail]);
	else if (event->kind == PERDURE_EVENT_FENCE)
		fprintf(out, " %s", fence_names[event->detail]);
	if (has_address(event->kind))
		fprintf(out, " 0x%lx", event->address);
	if (event->size)
		fprintf(out, " %lu", event->size);
	if (event->kind <= PERDURE_EVENT_FAILED_CAS)
		print_flags(out, event->detail);
	if (event->stack)
		symbols_resolve(session, event->stack, &site);
	if (site.frames && site.frame[0].file)
		fprintf(out, " @ %s:%u %s", site.frame[0].file, site.frame[0].line,
			site.frame[0].function);
	fputc('\n', out);
}
