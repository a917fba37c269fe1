/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events on their way from the target to whoever listens in the command (the trace, plug-ins): a
 * ring in the session's memory. Many threads of many processes write, one process reads. A writer
 * waits while the ring is full; it goes on without, if the reader is gone.
 */
#ifndef SESSION_STREAM_H
#define SESSION_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "perdure/oracle.h"

enum { STREAM_SLOTS = 1 << 16 };

struct stream_slot {
	uint64_t number; /* of the event that is complete here */
	struct perdure_event event;
};

struct stream {
	uint32_t on;       /* somebody listens */
	int32_t reader;    /* process */
	uint32_t finished; /* no writer is left */
	uint64_t written __attribute__((aligned(64)));
	uint64_t read __attribute__((aligned(64)));
	struct stream_slot *slot;
};

/* Between the events of two paths of an exploration; never shown to anybody. */
enum stream_mark { STREAM_PATH_BEGINS = 1 << 16, STREAM_PATH_ENDS };

/* Tells an event; event->number is filled in. `is_gone` asks whether a process has ended. */
void stream_write(struct stream *stream, struct perdure_event *event, bool (*is_gone)(int32_t pid));

/*
 * The next event; waits for it. False when all is read and `finished` is set. An event that its
 * writer began and never completed, because it was killed, is left out.
 */
bool stream_read(struct stream *stream, struct perdure_event *event);

#endif
