/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Time and chance. In a recovery both are the same each time: clocks start when the program before
 * the crash did, move a little at each look, and sleeping moves them on at once; random numbers
 * always begin with the same ones. Threads and other processes have a time of their own, so then
 * all of it is real.
 */
#include <errno.h>
#include <sys/random.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "runtime/execution.h"

enum { STEP_NS = 1000 };
static uint64_t passed_ns;

static bool is_virtual(void)
{
	return runtime_recovers &&
	       !(runtime_execution->inputs & (INPUT_THREADS | INPUT_PROCESSES | INPUT_SOCKETS));
}

static struct timespec look(clockid_t clock)
{
	struct executions *all = &runtime_session->executions;
	uint64_t start = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE ? all->started_ns
										   : 1000000000ull;
	uint64_t now = start + (passed_ns += STEP_NS);

	return (struct timespec){ now / 1000000000, now % 1000000000 };
}

PUBLIC int clock_gettime(clockid_t clock, struct timespec *time)
{
	int result = 0;

	if (is_virtual() && clock != CLOCK_PROCESS_CPUTIME_ID && clock != CLOCK_THREAD_CPUTIME_ID)
		*time = look(clock);
	else
		result = REAL(clock_gettime)(clock, time);
	if (result == 0)
		event_stored(time, sizeof(*time), FRAME);
	return result;
}

PUBLIC int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
	struct timespec now;
	int result = 0;

	if (is_virtual()) {
		now = look(CLOCK_REALTIME);
		*time = (struct timeval){ now.tv_sec, now.tv_nsec / 1000 };
	} else {
		result = REAL(gettimeofday)(time, zone);
	}
	if (result == 0)
		event_stored(time, sizeof(*time), FRAME);
	return result;
}

PUBLIC time_t time(time_t *result)
{
	time_t now = is_virtual() ? look(CLOCK_REALTIME).tv_sec : REAL(time)(NULL);

	if (result) {
		*result = now;
		event_stored(result, sizeof(*result), FRAME);
	}
	return now;
}

/* ---- sleeping ---- */

static bool skip(uint64_t seconds, uint64_t nanoseconds)
{
	if (!is_virtual())
		return false;
	passed_ns += seconds * 1000000000 + nanoseconds;
	return true;
}

PUBLIC int nanosleep(const struct timespec *time, struct timespec *left)
{
	return skip(time->tv_sec, time->tv_nsec) ? 0 : REAL(nanosleep)(time, left);
}

PUBLIC int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
			   struct timespec *left)
{
	if (flags & TIMER_ABSTIME ? is_virtual() : skip(time->tv_sec, time->tv_nsec))
		return 0;
	return REAL(clock_nanosleep)(clock, flags, time, left);
}

PUBLIC int usleep(useconds_t time)
{
	return skip(0, time * 1000ull) ? 0 : REAL(usleep)(time);
}

PUBLIC unsigned sleep(unsigned seconds)
{
	return skip(seconds, 0) ? 0 : REAL(sleep)(seconds);
}

/* ---- chance ---- */

static void fill(unsigned char *bytes, size_t size)
{
	static uint64_t state = 0x853c49e6748fea9bull;

	for (size_t i = 0; i < size; i++) {
		state = state * 6364136223846793005ull + 1442695040888963407ull;
		bytes[i] = state >> 56;
	}
}

PUBLIC ssize_t getrandom(void *bytes, size_t size, unsigned flags)
{
	ssize_t result = size;

	if (is_virtual())
		fill(bytes, size);
	else
		result = REAL(getrandom)(bytes, size, flags);
	if (result > 0)
		event_stored(bytes, result, FRAME);
	return result;
}

PUBLIC int getentropy(void *bytes, size_t size)
{
	int result = 0;

	if (is_virtual())
		fill(bytes, size);
	else
		result = REAL(getentropy)(bytes, size);
	if (result == 0)
		event_stored(bytes, size, FRAME);
	return result;
}
