/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of the commands that crash programs. Each returns what is wrong with its value, or null.
 */
#ifndef CLI_OPTIONS_CRASH_H
#define CLI_OPTIONS_CRASH_H

#include "cli/options.h"

const char *crash_set_recover(struct options *options, const char *value);
const char *crash_set_checker(struct options *options, const char *value);
const char *crash_set_bad_exit(struct options *options, const char *value);
const char *crash_set_drive(struct options *options, const char *value);
const char *crash_set_drive_recover(struct options *options, const char *value);
const char *crash_set_max_crash_points(struct options *options, const char *value);
const char *crash_set_schedule(struct options *options, const char *value);
const char *crash_set_schedules(struct options *options, const char *value);
const char *crash_set_preemptions(struct options *options, const char *value);
const char *crash_set_random(struct options *options, const char *value);
const char *crash_set_crashes(struct options *options, const char *value);
const char *crash_set_stop_on_first(struct options *options, const char *value);
const char *crash_set_chunk_order(struct options *options, const char *value);
const char *crash_set_strict(struct options *options, const char *value);
const char *crash_set_volatile(struct options *options, const char *value);
const char *crash_set_verifier(struct options *options, const char *value);
const char *crash_set_prefix(struct options *options, const char *value);
const char *crash_set_keep(struct options *options, const char *value);
const char *crash_set_resume(struct options *options, const char *value);
const char *crash_set_no_memo(struct options *options, const char *value);
const char *crash_set_only_crash(struct options *options, const char *value);
const char *crash_set_image(struct options *options, const char *value);
const char *crash_set_image_latest(struct options *options, const char *value);
const char *crash_set_store_log(struct options *options, const char *value);
const char *crash_set_seed(struct options *options, const char *value);

#endif
