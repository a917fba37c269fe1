/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a path has done to PM, for plug-ins and traces: kept until its end, and then told as a
 * whole, so that those who listen hear one path after the other.
 */
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "model/spin.h"
#include "runtime/hooks.h"
#include "symbolic/symbolic.h"

enum { EVENTS = 1 << 22 };

static struct perdure_event *events;
static uint32_t count;

void telling_note(const struct perdure_event *event)
{
	if (!events) {
		long got = syscall(SYS_mmap, NULL, (size_t)EVENTS * sizeof(*events),
				   PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0L);

		events = got == -1 ? NULL : (void *)got;
	}
	if (events && count < EVENTS)
		events[count++] = *event;
	else
		session_limit(
			runtime_session, thread_owner(),
			"a path made too many events for plug-ins: they did not hear the rest");
}

static void mark(enum stream_mark kind, uint32_t input, bool confirms)
{
	struct perdure_event event = { .kind = kind, .detail = confirms, .address = input };

	tell_now(&event);
}

void telling_end(uint32_t input, bool confirms)
{
	struct explore *explore = symbolic_shared();
	bool locked;

	if (!runtime_session->stream.on)
		return;
	locked = spin_lock(&explore->telling, thread_owner());
	mark(STREAM_PATH_BEGINS, input, confirms);
	for (uint32_t i = 0; i < count; i++)
		tell_now(&events[i]);
	mark(STREAM_PATH_ENDS, input, confirms);
	if (locked)
		spin_unlock(&explore->telling);
}
