/* SPDX-License-Identifier: BSD-3-Clause */
#include "drive/windows.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { OPEN = 10000, FIRST = 40000 /* microseconds */ };

static pthread_t clock_thread;
static bool stopped;

/* Until then, or until somebody asks for a window. */
static void wait_for(struct session_races *races, uint32_t asked, uint64_t microseconds)
{
	struct timespec time = { .tv_sec = microseconds / 1000000,
				 .tv_nsec = microseconds % 1000000 * 1000 };

	syscall(SYS_futex, &races->asked, FUTEX_WAIT, asked, &time, NULL, 0);
}

/* Whoever sees that a window is open after what it has done has seen all that was done in it. */
static void *keep_time(void *argument)
{
	struct session_races *races = argument;
	uint32_t before = races->asked;

	while (!__atomic_load_n(&stopped, __ATOMIC_ACQUIRE)) {
		uint32_t asked = __atomic_load_n(&races->asked, __ATOMIC_ACQUIRE);

		/* When threads start, everything is done for the first time, and takes longer. */
		wait_for(races, asked, asked == before ? OPEN : FIRST);
		if (asked != __atomic_load_n(&races->asked, __ATOMIC_ACQUIRE))
			continue; /* from the start */
		before = asked;
		__atomic_store_n(&races->watching, 0, __ATOMIC_SEQ_CST);
		wait_for(races, asked, (uint64_t)OPEN * (races->settings.sample - 1));
		__atomic_fetch_add(&races->window, 1, __ATOMIC_SEQ_CST);
		__atomic_store_n(&races->watching, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

bool windows_start(struct session *session)
{
	struct session_races *races = &session->races;

	stopped = false;
	races->watching = 1;
	/* What happens before what must be known of everything. */
	races->windows = !races->discovers && races->settings.sample > 1 &&
			 !(races->settings.detectors & RACES_HB);
	return !races->windows || pthread_create(&clock_thread, NULL, keep_time, races) == 0;
}

void windows_stop(struct session *session)
{
	struct session_races *races = &session->races;

	if (!races->windows)
		return;
	__atomic_store_n(&stopped, true, __ATOMIC_RELEASE);
	__atomic_fetch_add(&races->asked, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &races->asked, FUTEX_WAKE, 1, NULL, NULL, 0);
	pthread_join(clock_thread, NULL);
	races->windows = false;
}
