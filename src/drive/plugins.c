/* SPDX-License-Identifier: BSD-3-Clause */
#include "drive/plugins.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkers/checkers.h"
#include "drive/replay.h"
#include "report/symbols.h"
#include "report/types.h"

/* An owner number no thread of the target has. */
#define LISTENER (UINT32_MAX - 1)

static struct plugin {
	const struct perdure_oracle *oracle;
	struct perdure_host host; /* with the plug-in as its data */
	void *self;
} plugin[PLUGINS];
static unsigned plugins;
static struct session *current_session;
static struct replay *replay;

int plugins_load(const char *path, char *error, size_t size)
{
	const struct perdure_oracle *oracle;
	char full[PATH_MAX];
	void *library;

	if (plugins == PLUGINS) {
		snprintf(error, size, "more than %d plug-ins", PLUGINS);
		return -1;
	}
	if (!realpath(path, full)) {
		snprintf(error, size, "no such file");
		return -1;
	}
	library = dlopen(full, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		snprintf(error, size, "%s", dlerror());
		return -1;
	}
	oracle = dlsym(library, "perdure_oracle");
	if (!oracle) {
		snprintf(error, size, "is no plug-in: it does not define perdure_oracle");
		return -1;
	}
	if (!oracle->abi || oracle->abi > PERDURE_ORACLE_ABI) {
		snprintf(error, size,
			 "was built for version %u of the plug-in interface; this is %u",
			 oracle->abi, PERDURE_ORACLE_ABI);
		return -1;
	}
	if (!oracle->name || !*oracle->name) {
		snprintf(error, size, "has no name");
		return -1;
	}
	for (unsigned i = 0; i < plugins; i++)
		if (strcmp(plugin[i].oracle->name, oracle->name) == 0) {
			snprintf(error, size, "a plug-in called %s is already loaded",
				 oracle->name);
			return -1;
		}
	plugin[plugins++].oracle = oracle;
	return 0;
}

void plugins_describe(struct result *result)
{
	for (unsigned i = 0; i < plugins; i++)
		result->oracle[result->oracles++] =
			(struct result_oracle){ plugin[i].oracle->name, plugin[i].oracle->help };
}

/* ---- what plug-ins ask ---- */

static enum perdure_persistence host_persistence(const struct perdure_host *host, uint64_t address,
						 uint64_t size)
{
	static const enum perdure_persistence answers[] = {
		[LINES_PERSISTENT] = PERDURE_PERSISTENT,
		[LINES_FLUSHED] = PERDURE_FLUSHED,
		[LINES_DIRTY] = PERDURE_DIRTY,
	};

	(void)host;
	return answers[replay_state(replay, address, size)];
}

static unsigned host_transactions(const struct perdure_host *host, uint32_t thread)
{
	const struct transactions *tx = replay_transactions(replay, thread);

	(void)host;
	return tx ? tx->depth : 0;
}

static bool host_is_logged(const struct perdure_host *host, uint32_t thread, uint64_t address,
			   uint64_t size)
{
	const struct transactions *tx = replay_transactions(replay, thread);

	(void)host;
	return tx && transactions_protects(tx, address, size);
}

static bool host_symbol(const struct perdure_host *host, uint32_t stack, unsigned frame,
			struct perdure_frame *result)
{
	struct site site = { 0 };
	const struct frame_info *info;

	(void)host;
	if (stack)
		symbols_resolve(current_session, stack, &site);
	if (frame >= site.frames)
		return false;
	info = &site.frame[frame];
	*result = (struct perdure_frame){ info->function, info->file, info->line, info->column };
	return true;
}

static bool host_type(const struct perdure_host *host, const struct perdure_event *event,
		      unsigned level, struct perdure_type *result)
{
	const char *place;

	(void)host;
	if (!event->place || event->place > current_session->places.used)
		return false;
	place = current_session->places.place[event->place];
	while (level-- && *place_type(place))
		place = place_next(place);
	if (!*place_type(place))
		return false;
	*result = (struct perdure_type){
		.name = place_type(place),
		.offset = place_offset(place),
		.size = types_size(current_session, place_type(place)),
		.field = types_field(current_session, place_type(place), place_offset(place)),
	};
	return true;
}

static void copy_text(char *to, const char *from, size_t size)
{
	snprintf(to, size, "%s", from ? from : "");
}

/* Index + 1 of an equal text; a new one if there is room. */
static uint32_t intern(struct session *session, const struct session_custom *custom)
{
	uint32_t i;

	for (i = 0; i < session->customs; i++)
		if (strcmp(session->custom[i].oracle, custom->oracle) == 0 &&
		    strcmp(session->custom[i].message, custom->message) == 0 &&
		    strcmp(session->custom[i].role, custom->role) == 0 &&
		    strcmp(session->custom[i].other_role, custom->other_role) == 0)
			return i + 1;
	if (i == SESSION_CUSTOM) {
		session_limit(session, LISTENER,
			      "plug-ins said too many different things: some are not shown");
		return SESSION_CUSTOM;
	}
	session->custom[session->customs++] = *custom;
	return i + 1;
}

/* A number that no event had names no stack. */
static uint32_t known_stack(uint32_t stack)
{
	return stack < current_session->stacks.used ? stack : 0;
}

/* ---- values ---- */

static bool is_so(uint64_t value, enum perdure_relation relation, uint64_t number)
{
	switch (relation) {
	case PERDURE_EQUAL:
		return value == number;
	case PERDURE_DIFFERENT:
		return value != number;
	case PERDURE_BELOW:
		return value < number;
	default:
		return value > number;
	}
}

static uint32_t witness; /* an input that shows what was asked last; index + 1 */

uint32_t plugins_witness(void)
{
	return witness;
}

/* The path answers; what it does not answer in time may be. */
static bool ask(const struct perdure_event *event, enum perdure_relation relation, bool negated,
		uint64_t number)
{
	enum { PATIENCE_US = 10000000, PAUSE_US = 20 };
	struct explore_query *query = &current_session->explore->query;

	query->symbol = (uint32_t)event->symbol;
	query->relation = relation;
	query->negated = negated;
	query->number = number;
	__atomic_add_fetch(&query->asked, 1, __ATOMIC_RELEASE);
	for (unsigned waited = 0; waited < PATIENCE_US; waited += PAUSE_US) {
		if (__atomic_load_n(&query->answered, __ATOMIC_ACQUIRE) == query->asked) {
			witness = negated ? 0 : query->input;
			return query->answer;
		}
		usleep(PAUSE_US);
	}
	return true;
}

static bool host_may(const struct perdure_host *host, const struct perdure_event *event,
		     enum perdure_relation relation, uint64_t number)
{
	(void)host;
	return event->symbol && current_session->explore ? ask(event, relation, false, number)
							 : is_so(event->value, relation, number);
}

static bool host_must(const struct perdure_host *host, const struct perdure_event *event,
		      enum perdure_relation relation, uint64_t number)
{
	(void)host;
	return event->symbol && current_session->explore ? !ask(event, relation, true, number)
							 : is_so(event->value, relation, number);
}

static void host_report(const struct perdure_host *host, const struct perdure_report *report)
{
	const struct plugin *from = host->data;
	struct session_custom custom = { .performance = report->performance };

	copy_text(custom.oracle, from->oracle->name, sizeof(custom.oracle));
	copy_text(custom.message, report->message, sizeof(custom.message));
	copy_text(custom.role, report->role ? report->role : "store", sizeof(custom.role));
	copy_text(custom.other_role, report->other_role ? report->other_role : "store",
		  sizeof(custom.other_role));
	checkers_report(
		&(struct raw_finding){
			.kind = KIND_CUSTOM,
			.stack = known_stack(report->stack),
			.other = known_stack(report->other_stack),
			.address = report->address,
			.size = report->size,
			.custom = intern(current_session, &custom),
		},
		LISTENER);
}

/* ---- what they hear ---- */

bool plugins_start(struct session *session)
{
	current_session = session;
	replay = replay_create(session->options.model);
	if (!replay)
		return false;
	for (unsigned i = 0; i < plugins; i++) {
		plugin[i].host = (struct perdure_host){
			.abi = PERDURE_ORACLE_ABI,
			.data = &plugin[i],
			.persistence = host_persistence,
			.transactions = host_transactions,
			.is_logged = host_is_logged,
			.symbol = host_symbol,
			.type = host_type,
			.report = host_report,
			.may = host_may,
			.must = host_must,
		};
		current_session->plugin_at_work = i + 1;
		if (plugin[i].oracle->start)
			plugin[i].self = plugin[i].oracle->start(&plugin[i].host);
	}
	current_session->plugin_at_work = 0;
	return true;
}

void plugins_event(const struct perdure_event *event)
{
	for (unsigned i = 0; i < plugins; i++) {
		current_session->plugin_at_work = i + 1;
		witness = 0;
		if (plugin[i].oracle->event)
			plugin[i].oracle->event(plugin[i].self, &plugin[i].host, event);
	}
	current_session->plugin_at_work = 0;
	replay_event(replay, event);
}

void plugins_finish(void)
{
	for (unsigned i = 0; i < plugins; i++) {
		current_session->plugin_at_work = i + 1;
		if (plugin[i].oracle->finish)
			plugin[i].oracle->finish(plugin[i].self, &plugin[i].host);
	}
	current_session->plugin_at_work = 0;
}

const char *plugins_at_work(const struct session *session)
{
	return session->plugin_at_work ? plugin[session->plugin_at_work - 1].oracle->name : NULL;
}
