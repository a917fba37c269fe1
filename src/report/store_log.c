/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/store_log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 64 };

/* ---- writing ---- */

/* pmreorder knows stores of at most 8 bytes. */
static void write_store(FILE *out, const struct history_event *event, const unsigned char *data)
{
	for (uint64_t at = 0; at < event->size;) {
		uint64_t left = event->size - at, value = 0;
		uint64_t part = 8 - (event->address + at) % 8;

		if (part > left)
			part = left;
		while (part & (part - 1))
			part &= part - 1;
		memcpy(&value, data + event->data + at, part);
		fprintf(out, "|STORE;0x%lx;0x%lx;0x%lx", event->address + at, value, part);
		at += part;
	}
}

static void write_event(FILE *out, const struct history *history, uint32_t number)
{
	const struct history_event *event = &history->event[number];
	uint64_t line = event->address & ~(uint64_t)(LINE - 1);

	switch (event->kind) {
	case HISTORY_STORE:
		write_store(out, event, history->data);
		if (event->flags & HISTORY_NONTEMPORAL)
			fprintf(out, "|FLUSH;0x%lx;0x%lx", event->address, event->size);
		break;
	case HISTORY_FLUSH:
		fprintf(out, "|FLUSH;0x%lx;0x%x", line, LINE);
		break;
	case HISTORY_ORDERED:
		fprintf(out, "|FLUSH;0x%lx;0x%x|FENCE", line, LINE);
		break;
	case HISTORY_FENCE:
		fprintf(out, "|FENCE");
		break;
	case HISTORY_PERSIST:
		fprintf(out, "|FLUSH;0x%lx;0x%lx|FENCE", event->address, event->size);
		break;
	default:
		break;
	}
}

int store_log_write(const char *path, const struct session *session)
{
	const struct history *history = &session->executions.history;
	FILE *out = strcmp(path, "-") == 0 ? stdout : fopen(path, "we");

	if (!out)
		return -1;
	fprintf(out, "START");
	for (uint32_t i = 0; i < session->files; i++)
		fprintf(out, "|REGISTER_FILE;%s;0x%lx;0x%lx;0x%lx", session->file[i].path,
			session->file[i].base, session->file[i].used, session->file[i].first);
	for (uint32_t i = 0; i < history->events; i++)
		write_event(out, history, i);
	fprintf(out, "|STOP\n");
	return out == stdout ? fflush(out) : fclose(out);
}

/* ---- reading ---- */

enum state { PERSISTENT, FLUSHED, DIRTY };

struct piece {
	uint64_t address, size;
	enum state state;
	unsigned number; /* of the store */
};

struct judge {
	struct piece *piece; /* stores that are not persistent yet */
	size_t pieces, room;
	json_t *findings;
	unsigned stores, flushes, fences;
};

static void found(struct judge *judge, const char *kind, const char *severity, const char *message,
		  uint64_t address, uint64_t size)
{
	char id[32], place[32], fingerprint[32];

	snprintf(id, sizeof(id), "P%zu", json_array_size(judge->findings) + 1);
	snprintf(place, sizeof(place), "0x%lx", address);
	snprintf(fingerprint, sizeof(fingerprint), "%016lx", address * 31 + judge->stores);
	json_array_append_new(
		judge->findings,
		json_pack("{s:s, s:s, s:s, s:s, s:s, s:[], s:s, s:I, s:i, s:s, s:n, s:b, s:b}",
			  "id", id, "kind", kind, "severity", severity, "cause", id, "message",
			  message, "sites", "address", place, "size", (json_int_t)size, "count", 1,
			  "fingerprint", fingerprint, "fix", "suppressed", 0, "baseline", 0));
}

static void store(struct judge *judge, uint64_t address, uint64_t size)
{
	if (judge->pieces == judge->room) {
		judge->room = judge->room ? 2 * judge->room : 1024;
		judge->piece = realloc(judge->piece, judge->room * sizeof(*judge->piece));
		if (!judge->piece)
			abort();
	}
	judge->piece[judge->pieces++] = (struct piece){ address, size, DIRTY, ++judge->stores };
}

static bool overlaps(const struct piece *piece, uint64_t from, uint64_t to)
{
	return piece->address < to && from < piece->address + piece->size;
}

static void flush(struct judge *judge, uint64_t address, uint64_t size)
{
	uint64_t from = address & ~(uint64_t)(LINE - 1),
		 to = (address + size + LINE - 1) & ~(uint64_t)(LINE - 1);
	bool any = false;

	judge->flushes++;
	for (size_t i = 0; i < judge->pieces; i++)
		if (judge->piece[i].state == DIRTY && overlaps(&judge->piece[i], from, to)) {
			judge->piece[i].state = FLUSHED;
			any = true;
		}
	if (!any)
		found(judge, "redundant-flush", "performance", "a flush has nothing to write back",
		      address, size);
}

static void fence(struct judge *judge)
{
	size_t kept = 0;

	judge->fences++;
	for (size_t i = 0; i < judge->pieces; i++)
		if (judge->piece[i].state == DIRTY)
			judge->piece[kept++] = judge->piece[i];
	judge->pieces = kept;
}

static void judge_event(struct judge *judge, char *event)
{
	char *rest, *name = strtok_r(event, ";", &rest);
	char *first = name ? strtok_r(NULL, ";", &rest) : NULL,
	     *second = first ? strtok_r(NULL, ";", &rest) : NULL,
	     *third = second ? strtok_r(NULL, ";", &rest) : NULL;

	if (!name)
		return;
	if (strcmp(name, "STORE") == 0 && third)
		store(judge, strtoull(first, NULL, 0), strtoull(third, NULL, 0));
	else if (strcmp(name, "FLUSH") == 0 && second)
		flush(judge, strtoull(first, NULL, 0), strtoull(second, NULL, 0));
	else if (strcmp(name, "FENCE") == 0)
		fence(judge);
}

/* Lines of pmemcheck begin with ==PID==; the log itself is between START and STOP. */
static bool judge_log(struct judge *judge, FILE *in)
{
	bool inside = false, any = false;
	char *line = NULL;
	size_t room = 0;

	while (getdelim(&line, &room, '|', in) >= 0) {
		line[strcspn(line, "|")] = 0;
		if (strstr(line, "START")) { /* behind other words */
			inside = any = true;
			continue;
		}
		line[strcspn(line, "\n")] = 0;
		if (strncmp(line, "STOP", 4) == 0)
			inside = false;
		else if (inside)
			judge_event(judge, line);
	}
	free(line);
	return any;
}

json_t *store_log_judge(const char *path)
{
	FILE *in = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
	struct judge judge = { .findings = json_array() };
	bool any;

	if (!in)
		return NULL;
	any = judge_log(&judge, in);
	if (in != stdin)
		fclose(in);
	if (!any) {
		errno = EINVAL;
		return NULL;
	}
	for (size_t i = 0; i < judge.pieces; i++)
		found(&judge, judge.piece[i].state == DIRTY ? "missing-flush" : "missing-fence",
		      "correctness",
		      judge.piece[i].state == DIRTY ? "a store is never flushed"
						    : "a store is flushed, but no fence follows",
		      judge.piece[i].address, judge.piece[i].size);
	free(judge.piece);
	return json_pack(
		"{s:i, s:s, s:s, s:[s], s:b, s:[], s:{s:n, s:n}, s:{s:i, s:i, s:i}, s:o, s:[]}",
		"version", 1, "tool", "perdure", "engine", "run", "command", path, "complete", 1,
		"limits", "target", "exit", "signal", "stats", "stores", (int)judge.stores,
		"flushes", (int)judge.flushes, "fences", (int)judge.fences, "findings",
		judge.findings, "benign");
}
