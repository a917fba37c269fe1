/* SPDX-License-Identifier: BSD-3-Clause */
#include "session/stream.h"

#include <sched.h>
#include <time.h>

/* A writer that was killed in the middle is given up after about a second. */
enum { SPINS = 200, PATIENCE = 5000 };

static void pause_a_moment(unsigned *spins)
{
	if (++*spins < SPINS)
		__builtin_ia32_pause();
	else if (*spins < 2 * SPINS)
		sched_yield();
	else
		nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
}

void stream_write(struct stream *stream, struct perdure_event *event, bool (*is_gone)(int32_t pid))
{
	uint64_t number;
	struct stream_slot *slot;
	unsigned spins = 0;

	if (!__atomic_load_n(&stream->on, __ATOMIC_RELAXED))
		return;
	number = __atomic_fetch_add(&stream->written, 1, __ATOMIC_RELAXED);
	while (number - __atomic_load_n(&stream->read, __ATOMIC_ACQUIRE) >= STREAM_SLOTS) {
		pause_a_moment(&spins);
		if (spins % 1024 == 0 && is_gone(stream->reader))
			stream->on = 0;
		if (!stream->on)
			return;
	}
	slot = &stream->slot[number % STREAM_SLOTS];
	slot->event = *event;
	slot->event.number = number + 1;
	__atomic_store_n(&slot->number, number + 1, __ATOMIC_RELEASE);
}

bool stream_read(struct stream *stream, struct perdure_event *event)
{
	unsigned spins = 0;

	for (;;) {
		struct stream_slot *slot = &stream->slot[stream->read % STREAM_SLOTS];
		bool finished = __atomic_load_n(&stream->finished, __ATOMIC_ACQUIRE);

		if (__atomic_load_n(&slot->number, __ATOMIC_ACQUIRE) == stream->read + 1) {
			*event = slot->event;
			__atomic_store_n(&stream->read, stream->read + 1, __ATOMIC_RELEASE);
			return true;
		}
		if (finished || (spins > PATIENCE && stream->written > stream->read + 1)) {
			if (stream->read == stream->written)
				return false;
			__atomic_store_n(&stream->read, stream->read + 1, __ATOMIC_RELEASE);
			continue;
		}
		pause_a_moment(&spins);
	}
}
