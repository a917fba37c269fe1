/* SPDX-License-Identifier: BSD-3-Clause */
/* System calls that wait: other fibers run meanwhile. */
#include "fibers/fibers.h"
#include "races/races.h"
#include "runtime/execution.h"
#include "symbolic/network.h"
#include "symbolic/symbolic.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mqueue.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MILLISECOND 1000000ull

static bool alone(void)
{
	return !fibers_on || fibers_live() < 2;
}

bool fiber_await_descriptor(int fd, short events)
{
	struct pollfd own = { .fd = fd, .events = events };
	int saved_errno = errno;

	fiber_test_cancel();
	if (!alone() && !(fcntl(fd, F_GETFL) & O_NONBLOCK) && KERNEL(poll)(&own, 1, 0) == 0) {
		fiber_may_be_interrupted(true);
		fiber_wait_descriptors(&own, 1, FIBER_NEVER);
		fiber_test_cancel();
		if (fiber_was_interrupted())
			return false;
	}
	errno = saved_errno;
	return true;
}

/* A reader on another fiber must get its turn before all of it fits. */
ssize_t fiber_write(int fd, const void *bytes, size_t size)
{
	size_t done = 0;

	if (alone() || size <= PIPE_BUF || fcntl(fd, F_GETFL) & O_NONBLOCK ||
	    lseek(fd, 0, SEEK_CUR) >= 0) {
		return fiber_await(fd, POLLOUT) ? KERNEL(write)(fd, bytes, size) : -1;
	}
	while (done < size) {
		size_t part = size - done < PIPE_BUF ? size - done : PIPE_BUF;
		ssize_t written;

		written = fiber_await_descriptor(fd, POLLOUT)
				  ? KERNEL(write)(fd, (const char *)bytes + done, part)
				  : -1;
		if (written < 0)
			return done ? (ssize_t)done : -1;
		done += written;
	}
	return done;
}

void fiber_await_stream(FILE *stream)
{
	if (symbolic_on)
		inputs_changed(fileno(stream), 0); /* read by code without expressions */
	if (fibers_on && !alone() && stream->_IO_read_ptr >= stream->_IO_read_end)
		fiber_await_descriptor(fileno(stream), POLLIN);
}

#define READS_STREAM(type, name, parameters, call)                                                 \
	PUBLIC type name parameters                                                                \
	{                                                                                          \
		fiber_await_stream(stream);                                                        \
		return REAL(name) call;                                                            \
	}                                                                                          \
	struct ignore_semicolon

READS_STREAM(int, fgetc, (FILE * stream), (stream));
READS_STREAM(int, getc, (FILE * stream), (stream));
READS_STREAM(ssize_t, getline, (char **restrict line, size_t *restrict n, FILE *restrict stream),
	     (line, n, stream));
READS_STREAM(ssize_t, getdelim,
	     (char **restrict line, size_t *restrict n, int end, FILE *restrict stream),
	     (line, n, end, stream));

PUBLIC int getchar(void)
{
	fiber_await_stream(stdin);
	return REAL(getchar)();
}

/* ---- sockets ---- */

PUBLIC int accept(int fd, struct sockaddr *restrict address, socklen_t *restrict length)
{
	return fiber_await(fd, POLLIN) ? KERNEL(accept)(fd, address, length) : -1;
}

PUBLIC int accept4(int fd, struct sockaddr *restrict address, socklen_t *restrict length, int flags)
{
	return fiber_await(fd, POLLIN) ? KERNEL(accept4)(fd, address, length, flags) : -1;
}

/* ---- poll and its kin ---- */

static uint64_t deadline_of(int milliseconds)
{
	return milliseconds < 0 ? FIBER_NEVER : clock_elapsed() + milliseconds * MILLISECOND;
}

static uint64_t deadline_or_never(const struct timespec *time)
{
	return time ? clock_deadline_in(time) : FIBER_NEVER;
}

static int poll_until(struct pollfd *list, nfds_t count, uint64_t deadline)
{
	for (;;) {
		int heard = KERNEL(poll)(list, count, 0);

		if (heard != 0)
			return heard;
		fiber_test_cancel();
		fiber_may_be_interrupted(false);
		if (!fiber_wait_descriptors(list, count, deadline))
			return KERNEL(poll)(list, count, 0);
		fiber_test_cancel();
		if (fiber_was_interrupted())
			return -1;
	}
}

PUBLIC int poll(struct pollfd *list, nfds_t count, int milliseconds)
{
	if (alone() || milliseconds == 0)
		return KERNEL(poll)(list, count, milliseconds);
	return poll_until(list, count, deadline_of(milliseconds));
}

PUBLIC int ppoll(struct pollfd *list, nfds_t count, const struct timespec *time,
		 const sigset_t *mask)
{
	if (alone() || mask)
		return KERNEL(ppoll)(list, count, time, mask);
	return poll_until(list, count, deadline_or_never(time));
}

PUBLIC int epoll_wait(int fd, struct epoll_event *events, int count, int milliseconds)
{
	uint64_t deadline;
	int heard;

	if (alone() || milliseconds == 0)
		return KERNEL(epoll_wait)(fd, events, count, milliseconds);
	deadline = deadline_of(milliseconds);
	fiber_test_cancel();
	fiber_may_be_interrupted(false);
	while ((heard = KERNEL(epoll_wait)(fd, events, count, 0)) == 0)
		if (!fiber_wait_descriptor(fd, POLLIN, deadline) || fiber_current->interrupted)
			break;
	fiber_test_cancel();
	return fiber_was_interrupted() ? -1 : heard;
}

PUBLIC int epoll_pwait(int fd, struct epoll_event *events, int count, int milliseconds,
		       const sigset_t *mask)
{
	return alone() || mask ? KERNEL(epoll_pwait)(fd, events, count, milliseconds, mask)
			       : epoll_wait(fd, events, count, milliseconds);
}

/* The same as an array of pollfd; as many as there is room for. */
static nfds_t poll_of_sets(struct pollfd *list, nfds_t room, int count, const fd_set *in,
			   const fd_set *out, const fd_set *exceptions)
{
	nfds_t polls = 0;

	for (int fd = 0; fd < count && polls < room; fd++) {
		short events = (in && FD_ISSET(fd, in) ? POLLIN : 0) |
			       (out && FD_ISSET(fd, out) ? POLLOUT : 0) |
			       (exceptions && FD_ISSET(fd, exceptions) ? POLLPRI : 0);

		if (events)
			list[polls++] = (struct pollfd){ .fd = fd, .events = events };
	}
	return polls;
}

static int select_until(int count, fd_set *in, fd_set *out, fd_set *exceptions, uint64_t deadline)
{
	enum { ROOM = 256 };
	struct pollfd list[ROOM];
	nfds_t polls = poll_of_sets(list, ROOM, count, in, out, exceptions);
	struct timeval now = { 0 };

	fiber_test_cancel();
	fiber_may_be_interrupted(false);
	if (KERNEL(poll)(list, polls, 0) == 0)
		fiber_wait_descriptors(list, polls, deadline);
	fiber_test_cancel();
	if (fiber_was_interrupted())
		return -1;
	return KERNEL(select)(count, in, out, exceptions, &now);
}

PUBLIC int select(int count, fd_set *restrict in, fd_set *restrict out, fd_set *restrict exceptions,
		  struct timeval *restrict time)
{
	if (alone() || (time && !time->tv_sec && !time->tv_usec))
		return KERNEL(select)(count, in, out, exceptions, time);
	return select_until(
		count, in, out, exceptions,
		time ? clock_deadline_in(&(struct timespec){ time->tv_sec, time->tv_usec * 1000 })
		     : FIBER_NEVER);
}

PUBLIC int pselect(int count, fd_set *restrict in, fd_set *restrict out,
		   fd_set *restrict exceptions, const struct timespec *restrict time,
		   const sigset_t *restrict mask)
{
	if (alone() || mask)
		return KERNEL(pselect)(count, in, out, exceptions, time, mask);
	return select_until(count, in, out, exceptions, deadline_or_never(time));
}

/* ---- what only other processes can end ---- */

/* False, with errno: a signal came first. */
static bool wait_for_others(void)
{
	fiber_test_cancel();
	fiber_may_be_interrupted(true);
	fiber_wait_outside(NULL, FIBER_NEVER);
	return !fiber_was_interrupted();
}

PUBLIC pid_t waitpid(pid_t pid, int *status, int options)
{
	pid_t result;

	if (alone() || options & WNOHANG)
		return REAL(waitpid)(pid, status, options);
	while ((result = REAL(waitpid)(pid, status, options | WNOHANG)) == 0)
		if (!wait_for_others())
			return -1;
	return result;
}

PUBLIC pid_t wait(int *status)
{
	return alone() ? REAL(wait)(status) : waitpid(-1, status, 0);
}

PUBLIC pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
	pid_t result;

	if (alone() || options & WNOHANG)
		return REAL(wait4)(pid, status, options, usage);
	while ((result = REAL(wait4)(pid, status, options | WNOHANG, usage)) == 0)
		if (!wait_for_others())
			return -1;
	return result;
}

/* System V's, and POSIX's queues, which are descriptors. */
PUBLIC int semop(int id, struct sembuf *operations, size_t count)
{
	struct sembuf tried[32];
	int result;

	if (alone() || count > 32)
		return REAL(semop)(id, operations, count);
	for (size_t i = 0; i < count; i++) {
		tried[i] = operations[i];
		tried[i].sem_flg |= IPC_NOWAIT;
		if (operations[i].sem_flg & IPC_NOWAIT)
			return REAL(semop)(id, operations, count);
	}
	while ((result = REAL(semop)(id, tried, count)) < 0 && errno == EAGAIN)
		if (!wait_for_others())
			return -1;
	return result;
}

PUBLIC ssize_t msgrcv(int id, void *message, size_t size, long type, int flags)
{
	ssize_t result;

	if (alone() || flags & IPC_NOWAIT)
		return REAL(msgrcv)(id, message, size, type, flags);
	while ((result = REAL(msgrcv)(id, message, size, type, flags | IPC_NOWAIT)) < 0 &&
	       errno == ENOMSG)
		if (!wait_for_others())
			return -1;
	return result;
}

PUBLIC ssize_t mq_receive(mqd_t queue, char *message, size_t size, unsigned *priority)
{
	return fiber_await(queue, POLLIN) ? REAL(mq_receive)(queue, message, size, priority) : -1;
}

PUBLIC int flock(int fd, int operation)
{
	if (runtime_explores)
		return 0; /* paths have files of their own, and must not wait for each other */
	if (runtime_races && operation & LOCK_UN)
		races_handed(-1, true);
	if (runtime_races && !(operation & LOCK_UN)) {
		int result = REAL(flock)(fd, operation);

		races_handed(-1, false);
		return result;
	}
	int result;

	if (alone() || operation & LOCK_NB || operation == LOCK_UN)
		return REAL(flock)(fd, operation);
	while ((result = REAL(flock)(fd, operation | LOCK_NB)) < 0 && errno == EWOULDBLOCK)
		if (!wait_for_others())
			return -1;
	return result;
}
