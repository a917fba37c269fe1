/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which stores of code that was not built with perdure-cc are atomic or volatile in its source. The
 * instruction does not say, but debug information and the line of the store do.
 */
#ifndef REPORT_ATOMICITY_H
#define REPORT_ATOMICITY_H

#include <stdbool.h>

#include "model/history.h"
#include "session/session.h"

/*
 * Makes stores plain that are plain in the source. What cannot be found out stays as if it were
 * atomic; false if there was such a store.
 */
bool atomicity_settle(const struct session *session, struct history_event *event, uint32_t events);

#endif
