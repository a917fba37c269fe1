/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that are made together start together: one that has done its work before the next one
 * is there races with nobody.
 */
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "races/races.h"

enum { GATED = 64, STEP = 200, QUIET = 1000, LONGEST = 20000 /* microseconds */, TRIES = 5000 };

static uint32_t made;   /* threads */
static uint32_t opened; /* for how many of them */
static uint32_t inside; /* threads that wait, or have not noticed yet */

void gate_note(void)
{
	races_meet();
	__atomic_fetch_add(&made, 1, __ATOMIC_RELAXED);
}

/* --sample: in what threads begin with there are most races. */
static void ask_for_window(void)
{
	struct session_races *races = &runtime_session->races;

	__atomic_fetch_add(&races->asked, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &races->asked, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Until no more are made for a while. */
void gate_wait(void)
{
	struct timespec step = { .tv_nsec = STEP * 1000 };
	uint32_t number = __atomic_load_n(&made, __ATOMIC_RELAXED), seen = number, quiet = 0;
	uint32_t at = __atomic_load_n(&opened, __ATOMIC_ACQUIRE);

	if (number > GATED)
		return;
	__atomic_fetch_add(&inside, 1, __ATOMIC_ACQ_REL);
	for (unsigned waited = 0; waited < LONGEST && quiet < QUIET && at < seen; waited += STEP) {
		uint32_t now;

		syscall(SYS_futex, &opened, FUTEX_WAIT_PRIVATE, at, &step, NULL, 0);
		now = __atomic_load_n(&made, __ATOMIC_RELAXED);
		quiet = now == seen ? quiet + STEP : 0;
		seen = now;
		at = __atomic_load_n(&opened, __ATOMIC_ACQUIRE);
	}
	if (at < seen) { /* the first one to notice */
		__atomic_store_n(&opened, seen, __ATOMIC_RELEASE);
		syscall(SYS_futex, &opened, FUTEX_WAKE_PRIVATE, GATED, NULL, NULL, 0);
		ask_for_window();
	}
	__atomic_fetch_sub(&inside, 1, __ATOMIC_ACQ_REL);
	/* Who is awake first waits for the others. */
	for (unsigned tries = 0; tries < TRIES && __atomic_load_n(&inside, __ATOMIC_ACQUIRE);
	     tries++)
		syscall(SYS_sched_yield);
}
