/* SPDX-License-Identifier: BSD-3-Clause */
/* What the options of `perdure explore` set; each returns null, or what is wrong with the value. */
#ifndef CLI_OPTIONS_EXPLORE_H
#define CLI_OPTIONS_EXPLORE_H

#include "cli/options.h"

const char *explore_set_arguments(struct options *options, const char *value);
const char *explore_set_stdin(struct options *options, const char *value);
const char *explore_set_file(struct options *options, const char *value);
const char *explore_set_variable(struct options *options, const char *value);
const char *explore_set_crash(struct options *options, const char *value);
const char *explore_set_coverage(struct options *options, const char *value);
const char *explore_set_sym_recover(struct options *options, const char *value);
const char *explore_set_paths(struct options *options, const char *value);
const char *explore_set_socket(struct options *options, const char *value);
const char *explore_set_packet(struct options *options, const char *value);
const char *explore_set_search(struct options *options, const char *value);
const char *explore_set_states(struct options *options, const char *value);
const char *explore_set_solver_time(struct options *options, const char *value);
const char *explore_set_inputs(struct options *options, const char *value);
const char *explore_set_shows(struct options *options, const char *value);

#endif
