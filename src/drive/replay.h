/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of memory as of an event that is being listened to. The target is already further on,
 * so a listener that asks questions keeps a model of its own, which this feeds.
 */
#ifndef DRIVE_REPLAY_H
#define DRIVE_REPLAY_H

#include "model/lines.h"
#include "model/transactions.h"
#include "perdure/oracle.h"

struct replay;

/* Null if there is not enough address space. */
struct replay *replay_create(enum lines_model model);
void replay_event(struct replay *replay, const struct perdure_event *event);

enum lines_state replay_state(const struct replay *replay, uint64_t address, uint64_t size);
/* The transactions of a thread; null if it never had one. */
const struct transactions *replay_transactions(const struct replay *replay, uint32_t thread);

#endif
