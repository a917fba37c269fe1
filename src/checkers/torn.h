/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Torn stores: persistency races, as yashme.txt defines them (Definition 5.1, Theorem 1). A
 * compiler may make a store that is not atomic in several steps. Recovery must not read one that
 * could be half persistent: unless, in every run that looks the same to it, the line was written
 * back after the store, or it has seen a later atomic store to the line.
 *
 * Fed with the reads of one recovery, in order, by cross_failure.c.
 */
#ifndef CHECKERS_TORN_H
#define CHECKERS_TORN_H

#include "model/view.h"

struct torn;

struct torn_settings {
	bool prefix; /* otherwise only what was not persistent at the crash itself */
	bool eadr;   /* caches are persistent: no flush matters, but order does */
};

/* Of this history; `prebuilt`: its transactions are those of a library that has no hooks. */
struct torn *torn_new(const struct history *history, bool prebuilt,
		      const struct torn_settings *settings);
void torn_free(struct torn *torn);

/* Another recovery: nothing was read yet. */
void torn_begin(struct torn *torn);

/*
 * Could the store behind this part be torn when it is read from this line, after a crash before
 * that event?
 */
bool torn_is_race(struct torn *torn, uint64_t line, uint32_t part, uint32_t crash);

/* A part of this line has been read. */
void torn_note_read(struct torn *torn, uint64_t line, uint32_t part);

/* How many threads it has. */
uint32_t torn_threads(const struct torn *torn);

/* With one thread, what was no race at an earlier crash is none at a later one. */
bool torn_is_simple(const struct torn *torn);

/* True the first time. */
bool torn_is_new(struct torn *torn, uint32_t load, uint32_t store, bool benign);

#endif
