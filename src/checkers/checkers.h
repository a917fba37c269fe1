/* SPDX-License-Identifier: BSD-3-Clause */
/* Checkers turn what the model hears into raw findings. One file a checker. */
#ifndef CHECKERS_CHECKERS_H
#define CHECKERS_CHECKERS_H

#include "session/session.h"

/* Lets the checkers listen to the session's model in this process. */
void checkers_start(struct session *session);

/* For checkers: counts an occurrence if its kind is wanted; the number of its entry, or 0. */
uint32_t checkers_report(const struct raw_finding *finding, uint32_t owner);

/* The program asks not to be judged for a while, in this process; may nest. */
void checkers_mute(bool begin);
bool checkers_are_muted(void);

extern const struct lines_listener pattern_checker;

/* Transactions: `earlier` logged some of these bytes before, `again` of them in all. */
void check_duplicate_add(const struct lines_thread *thread, uint64_t address, uint64_t size,
			 uint64_t again, uint32_t stack, uint32_t earlier);
/*
 * Bytes that no transaction protects. `begin` is the transaction's, 0 if there is none; `place`
 * names a structure that must not be changed outside of one, 0 if it is about any store.
 */
void check_unlogged_store(const struct lines_thread *thread, uint64_t address, uint64_t size,
			  uint32_t stack, uint32_t begin, uint32_t place);

#endif
