/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/options_crash.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "drive/check.h"

static const char *set_command(char ***command, const char *value)
{
	*command = options_split(value);
	if (!*command)
		return "a quote is not closed";
	return **command ? NULL : "is empty";
}

static const char *parse_count(const char *value, long low, long high, uint32_t *count)
{
	long number = 0;
	const char *error = options_parse_long(value, low, high, &number);

	*count = number;
	return error;
}

const char *crash_set_recover(struct options *options, const char *value)
{
	options->recover_text = value;
	return set_command(&options->recover, value);
}

const char *crash_set_checker(struct options *options, const char *value)
{
	return set_command(&options->checker, value);
}

/* "1,3-5", or "nonzero". */
const char *crash_set_bad_exit(struct options *options, const char *value)
{
	if (strcmp(value, "nonzero") == 0) {
		memset(options->bad_exit + 1, 1, 255);
		return NULL;
	}
	while (*value) {
		char *end;
		long low = strtol(value, &end, 10), high = low;

		if (end == value)
			return "must be a list of numbers, like 1,3-5, or nonzero";
		if (*end == '-')
			high = strtol(end + 1, &end, 10);
		if (low < 0 || high > 255 || low > high || (*end && *end != ','))
			return "must be a list of numbers from 0 to 255, like 1,3-5, or nonzero";
		memset(options->bad_exit + low, 1, high - low + 1);
		value = end + (*end == ',');
	}
	return NULL;
}

const char *crash_set_drive(struct options *options, const char *value)
{
	options->drive = value;
	return NULL;
}

const char *crash_set_drive_recover(struct options *options, const char *value)
{
	options->drive_recover = value;
	return NULL;
}

const char *crash_set_max_crash_points(struct options *options, const char *value)
{
	return options_parse_long(value, 1, 1000000000, &options->max_crash_points);
}

const char *crash_set_schedule(struct options *options, const char *value)
{
	return schedules_parse(&options->schedules, value)
		       ? NULL
		       : "must be det, random, pct, all, or script:… from a report";
}

const char *crash_set_schedules(struct options *options, const char *value)
{
	return parse_count(value, 1, 1000000000, &options->schedules.count);
}

const char *crash_set_preemptions(struct options *options, const char *value)
{
	return parse_count(value, 0, 1000, &options->schedules.preemptions);
}

const char *crash_set_random(struct options *options, const char *value)
{
	return options_parse_long(value, 1, 1000000000, &options->random);
}

const char *crash_set_crashes(struct options *options, const char *value)
{
	return options_parse_long(value, 1, CHECK_CRASHES, &options->crashes);
}

const char *crash_set_stop_on_first(struct options *options, const char *value)
{
	(void)value;
	options->stop_on_first = true;
	return NULL;
}

const char *crash_set_chunk_order(struct options *options, const char *value)
{
	options->any_chunk_order = strcmp(value, "any") == 0;
	return options->any_chunk_order || strcmp(value, "ascending") == 0
		       ? NULL
		       : "must be ascending or any";
}

const char *crash_set_strict(struct options *options, const char *value)
{
	(void)value;
	options->strict = true;
	return NULL;
}

const char *crash_set_volatile(struct options *options, const char *value)
{
	options->plain_volatile = strcmp(value, "plain") == 0;
	return options->plain_volatile || strcmp(value, "atomic") == 0 ? NULL
								       : "must be atomic or plain";
}

const char *crash_set_verifier(struct options *options, const char *value)
{
	if (strlen(value) >= SESSION_PATH)
		return "is too long for the name of a function";
	return options_add_file(value, options->verifier, &options->verifiers);
}

const char *crash_set_prefix(struct options *options, const char *value)
{
	options->no_prefix = strcmp(value, "off") == 0;
	return options->no_prefix || strcmp(value, "on") == 0 ? NULL : "must be on or off";
}

const char *crash_set_keep(struct options *options, const char *value)
{
	(void)value;
	options->keep = true;
	return NULL;
}

const char *crash_set_resume(struct options *options, const char *value)
{
	options->resume = value;
	return NULL;
}

const char *crash_set_no_memo(struct options *options, const char *value)
{
	(void)value;
	options->no_memo = true;
	return NULL;
}

const char *crash_set_only_crash(struct options *options, const char *value)
{
	return parse_count(value, 1, 1000000000, &options->only_crash);
}

const char *crash_set_image(struct options *options, const char *value)
{
	options->image = value;
	return NULL;
}

const char *crash_set_image_latest(struct options *options, const char *value)
{
	(void)value;
	options->image_latest = true;
	return NULL;
}

const char *crash_set_store_log(struct options *options, const char *value)
{
	options->store_log = value;
	return NULL;
}

const char *crash_set_seed(struct options *options, const char *value)
{
	long seed;
	const char *error = options_parse_long(value, 0, LONG_MAX, &seed);

	options->schedules.seed = seed;
	return error;
}
