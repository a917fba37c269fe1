/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Time and chance. In a recovery both are the same each time: clocks start when the program before
 * the crash did, move a little at each look, and sleeping moves them on at once; random numbers
 * always begin with the same ones. Threads and other processes have a time of their own, so then
 * all of it is real.
 */
#include <errno.h>
#include <sys/random.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "fibers/fibers.h"
#include "runtime/execution.h"

enum { STEP_NS = 1000 };
static uint64_t passed_ns;

bool clock_is_virtual(void)
{
	return (runtime_recovers || fibers_on) &&
	       !(runtime_execution->inputs &
		 (INPUT_THREADS | INPUT_PROCESSES | INPUT_SOCKETS | INPUT_TIMERS));
}

static uint64_t nanoseconds(const struct timespec *time)
{
	return time->tv_sec < 0 ? 0 : time->tv_sec * 1000000000ull + time->tv_nsec;
}

/* When the virtual clock was 0, on this clock. */
static uint64_t start_of(clockid_t clock)
{
	bool is_date = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;

	return is_date ? runtime_session->executions.started_ns : 1000000000ull;
}

static uint64_t real_time(clockid_t clock)
{
	struct timespec now;

	REAL(clock_gettime)(clock, &now);
	return nanoseconds(&now);
}

uint64_t clock_elapsed(void)
{
	return clock_is_virtual() ? passed_ns : real_time(CLOCK_MONOTONIC);
}

void clock_pass(uint64_t nanoseconds)
{
	passed_ns += nanoseconds;
}

uint64_t clock_deadline(clockid_t clock, const struct timespec *time)
{
	uint64_t until, now;

	if (!time)
		return FIBER_NEVER;
	until = nanoseconds(time);
	now = clock_is_virtual() ? start_of(clock) + passed_ns : real_time(clock);
	return clock_elapsed() + (until > now ? until - now : 0);
}

uint64_t clock_deadline_in(const struct timespec *time)
{
	return clock_elapsed() + nanoseconds(time);
}

static struct timespec look(clockid_t clock)
{
	uint64_t now = start_of(clock) + (passed_ns += STEP_NS);

	if (fibers_on && fibers_live() > 1)
		fiber_point(POINT_ACCESS); /* it may wait for a time, and look again and again */

	return (struct timespec){ now / 1000000000, now % 1000000000 };
}

PUBLIC int clock_gettime(clockid_t clock, struct timespec *time)
{
	int result = 0;

	if (clock_is_virtual() && clock != CLOCK_PROCESS_CPUTIME_ID &&
	    clock != CLOCK_THREAD_CPUTIME_ID)
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

	if (clock_is_virtual()) {
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
	time_t now = clock_is_virtual() ? look(CLOCK_REALTIME).tv_sec : REAL(time)(NULL);

	if (result) {
		*result = now;
		event_stored(result, sizeof(*result), FRAME);
	}
	return now;
}

/* What code built with perdure-cc has for rdtsc: a counter of a processor of 1 GHz. */
PUBLIC uint64_t __perdure_rdtsc(void);

PUBLIC uint64_t __perdure_rdtsc(void)
{
	struct timespec now;

	if (!clock_is_virtual())
		return __builtin_ia32_rdtsc();
	now = look(CLOCK_MONOTONIC);
	return nanoseconds(&now);
}

/* ---- sleeping ---- */

/* False: it has to be done for real. */
static bool sleep_until(uint64_t deadline, uint64_t *left)
{
	*left = 0;
	if (fibers_on && (clock_is_virtual() || fibers_live() > 1)) {
		fiber_test_cancel();
		fiber_may_be_interrupted(false);
		while (fiber_wait(NULL, deadline) && !fiber_current->interrupted)
			fiber_test_cancel();
		if (fiber_was_interrupted() && deadline > clock_elapsed())
			*left = deadline - clock_elapsed();
		return true;
	}
	if (!clock_is_virtual())
		return false;
	if (deadline > passed_ns)
		passed_ns = deadline;
	return true;
}

static bool sleep_for(uint64_t seconds, uint64_t nanoseconds, uint64_t *left)
{
	return runtime_execution &&
	       sleep_until(clock_elapsed() + seconds * 1000000000ull + nanoseconds, left);
}

static int end_of_sleep(uint64_t left, struct timespec *rest)
{
	if (!left)
		return 0;
	if (rest)
		*rest = (struct timespec){ left / 1000000000, left % 1000000000 };
	errno = EINTR;
	return -1;
}

PUBLIC int nanosleep(const struct timespec *time, struct timespec *rest)
{
	uint64_t left;

	return sleep_for(time->tv_sec, time->tv_nsec, &left) ? end_of_sleep(left, rest)
							     : REAL(nanosleep)(time, rest);
}

PUBLIC int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
			   struct timespec *rest)
{
	uint64_t left;
	bool absolute = flags & TIMER_ABSTIME;
	bool slept = runtime_execution && absolute ? sleep_until(clock_deadline(clock, time), &left)
						   : sleep_for(time->tv_sec, time->tv_nsec, &left);

	if (!slept)
		return REAL(clock_nanosleep)(clock, flags, time, rest);
	return end_of_sleep(left, absolute ? NULL : rest) ? EINTR : 0;
}

PUBLIC int usleep(useconds_t time)
{
	uint64_t left;

	return sleep_for(0, time * 1000ull, &left) ? end_of_sleep(left, NULL) : REAL(usleep)(time);
}

PUBLIC unsigned sleep(unsigned seconds)
{
	uint64_t left;

	return sleep_for(seconds, 0, &left) ? (left + 999999999) / 1000000000
					    : REAL(sleep)(seconds);
}

/* ---- timers: they run on real time, and so does everything then ---- */

PUBLIC unsigned alarm(unsigned seconds)
{
	execution_note_input(INPUT_TIMERS);
	return REAL(alarm)(seconds);
}

PUBLIC int setitimer(__itimer_which_t which, const struct itimerval *restrict time,
		     struct itimerval *restrict old)
{
	execution_note_input(INPUT_TIMERS);
	return REAL(setitimer)(which, time, old);
}

PUBLIC int timer_create(clockid_t clock, struct sigevent *restrict event, timer_t *restrict timer)
{
	execution_note_input(INPUT_TIMERS);
	return REAL(timer_create)(clock, event, timer);
}

PUBLIC int timerfd_create(int clock, int flags)
{
	execution_note_input(INPUT_TIMERS);
	return REAL(timerfd_create)(clock, flags);
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

	if (clock_is_virtual())
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

	if (clock_is_virtual())
		fill(bytes, size);
	else
		result = REAL(getentropy)(bytes, size);
	if (result == 0)
		event_stored(bytes, size, FRAME);
	return result;
}
