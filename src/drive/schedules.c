/* SPDX-License-Identifier: BSD-3-Clause */
#include "drive/schedules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PCT_DEPTHS = 3 };

/*
 * PCT finds a bug of depth d among n threads and k steps with a probability of 1 / (n k^(d-1)) at
 * least, if it looks for that depth. Nobody knows the depth, so depths take turns.
 */
static uint32_t depth_of(uint64_t seed)
{
	return 1 + seed % PCT_DEPTHS;
}

bool schedules_is_measuring(const struct schedules *schedules)
{
	return schedules->policy == SCHEDULE_PCT && !schedules->measured;
}

/* The next script in the order of a tree search: the last choice that has another way takes it. */
static bool next_script(struct schedule_settings *settings)
{
	uint32_t length = settings->choices;

	while (length &&
	       settings->choice[length - 1].taken + 1 >= settings->choice[length - 1].ways)
		length--;
	if (!length)
		return false;
	settings->choice[length - 1].taken++;
	settings->script_length = length;
	return true;
}

/* "3x0,1": three times the first way, then the second. */
static bool read_script(const char *text, struct schedule_settings *settings)
{
	uint32_t length = 0;

	while (*text) {
		char *end;
		unsigned long count = 1, way = strtoul(text, &end, 10);

		if (end == text)
			return false;
		if (*end == 'x') {
			count = way;
			text = end + 1;
			way = strtoul(text, &end, 10);
			if (end == text)
				return false;
		}
		if (way > UINT8_MAX || count > SCHEDULE_CHOICES - length)
			return false;
		while (count--)
			settings->choice[length++] = (struct schedule_choice){ .taken = way };
		text = end + (*end == ',');
		if (*end && *end != ',')
			return false;
	}
	settings->script_length = length;
	return true;
}

bool schedules_next(struct schedules *schedules, struct schedule_settings *settings)
{
	bool measures = schedules_is_measuring(schedules);

	if (schedules->count && schedules->done >= schedules->count)
		return false;
	if (schedules->policy == SCHEDULE_SCRIPT && schedules->replay) {
		if (schedules->done || !read_script(schedules->replay, settings))
			return false;
	} else if (schedules->policy == SCHEDULE_SCRIPT && schedules->done) {
		if (!next_script(settings)) {
			schedules->exhausted = true;
			return false;
		}
	}
	if (measures)
		schedules->measured = true;
	else if (schedules->policy == SCHEDULE_PCT && !schedules->done)
		settings->steps = settings->points;
	settings->policy = measures ? SCHEDULE_ROUND_ROBIN : schedules->policy;
	settings->measure = measures;
	settings->seed = schedules->seed + schedules->done;
	settings->depth = depth_of(settings->seed);
	settings->preemptions = schedules->replay ? UINT32_MAX : schedules->preemptions;
	settings->points = 0;
	settings->choices = 0;
	schedules->done += !measures;
	return true;
}

static char *describe_script(const struct schedule_settings *settings)
{
	uint32_t length = settings->choices;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	while (length && !settings->choice[length - 1].taken)
		length--;
	fprintf(out, "script:");
	for (uint32_t i = 0, count; i < length; i += count) {
		uint8_t taken = settings->choice[i].taken;

		for (count = 1; i + count < length && settings->choice[i + count].taken == taken;
		     count++)
			;
		if (i)
			fputc(',', out);
		if (count > 1)
			fprintf(out, "%ux", count);
		fprintf(out, "%u", taken);
	}
	fclose(out);
	return text;
}

char *schedules_describe(const struct schedules *schedules,
			 const struct schedule_settings *settings)
{
	char *text = NULL;
	int length = 0;

	switch (schedules->policy) {
	case SCHEDULE_RANDOM:
	case SCHEDULE_PCT:
		length = asprintf(&text, "%s --seed %lu",
				  schedules->policy == SCHEDULE_PCT ? "pct" : "random",
				  settings->seed);
		return length < 0 ? NULL : text;
	case SCHEDULE_SCRIPT:
		return describe_script(settings);
	default:
		return strdup("det");
	}
}

static bool is_script(const char *text)
{
	struct schedule_settings scratch = {
		.choice = calloc(SCHEDULE_CHOICES, sizeof(struct schedule_choice)),
	};
	bool valid = scratch.choice && read_script(text, &scratch);

	free(scratch.choice);
	return valid;
}

bool schedules_parse(struct schedules *schedules, const char *text)
{
	static const char *const names[] = {
		[SCHEDULE_ROUND_ROBIN] = "det",
		[SCHEDULE_RANDOM] = "random",
		[SCHEDULE_PCT] = "pct",
		[SCHEDULE_SCRIPT] = "all",
	};

	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(text, names[i]) == 0) {
			schedules->policy = i;
			return true;
		}
	if (strncmp(text, "script:", 7) != 0 || !is_script(text + 7))
		return false;
	schedules->policy = SCHEDULE_SCRIPT;
	schedules->replay = text + 7;
	return true;
}
