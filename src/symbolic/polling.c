/* SPDX-License-Identifier: BSD-3-Clause */
/* Who waits for what. Several threads wait in fibers/; here is one that waits alone. */
#include <errno.h>

#include "fibers/fibers.h"
#include "symbolic/network.h"

enum { ENTRIES = 256, MILLISECOND = 1000000 };

struct epoll_entry {
	int fd;
	struct epoll_event event;
	uint32_t heard; /* EPOLLET: of the news; EPOLLOUT is none */
	bool told_out;  /* EPOLLET: that it can be written to */
	bool off;       /* EPOLLONESHOT */
};

struct epoll {
	unsigned count;
	struct epoll_entry entry[ENTRIES];
};

static short ready(int fd, short wanted)
{
	struct pollfd one = { .fd = fd, .events = wanted };

	if (endpoint_of(fd))
		return endpoint_ready(fd, wanted) & (short)(wanted | POLLERR | POLLHUP);
	return REAL(poll)(&one, 1, 0) > 0 ? one.revents : 0;
}

static uint64_t deadline_in(int milliseconds)
{
	return milliseconds < 0 ? FIBER_NEVER
				: clock_elapsed() + (uint64_t)milliseconds * MILLISECOND;
}

static uint64_t deadline_of(const struct timespec *time)
{
	return time ? clock_deadline_in(time) : FIBER_NEVER;
}

/* ---- poll ---- */

static int poll_now(struct pollfd *list, nfds_t count)
{
	int heard = 0;

	for (nfds_t i = 0; i < count; i++) {
		list[i].revents = list[i].fd < 0 ? 0 : ready(list[i].fd, list[i].events);
		heard += list[i].revents != 0;
	}
	return heard;
}

static int poll_until(struct pollfd *list, nfds_t count, uint64_t deadline)
{
	int heard;

	while (!(heard = poll_now(list, count)) && deadline > clock_elapsed())
		network_pass_time(deadline);
	return heard;
}

int network_poll(struct pollfd *list, nfds_t count, int milliseconds)
{
	return poll_until(list, count, milliseconds ? deadline_in(milliseconds) : 0);
}

int network_ppoll(struct pollfd *list, nfds_t count, const struct timespec *time,
		  const sigset_t *mask)
{
	(void)mask;
	return poll_until(list, count, deadline_of(time));
}

/* ---- select ---- */

static int select_until(int count, fd_set *in, fd_set *out, fd_set *exceptions, uint64_t deadline)
{
	struct pollfd list[FD_SETSIZE];
	nfds_t polls = 0;
	int heard = 0;

	for (int fd = 0; fd < count && fd < FD_SETSIZE; fd++) {
		short wanted = (in && FD_ISSET(fd, in) ? POLLIN : 0) |
			       (out && FD_ISSET(fd, out) ? POLLOUT : 0) |
			       (exceptions && FD_ISSET(fd, exceptions) ? POLLPRI : 0);

		if (wanted)
			list[polls++] = (struct pollfd){ .fd = fd, .events = wanted };
	}
	poll_until(list, polls, deadline);
	for (nfds_t i = 0; i < polls; i++) {
		int fd = list[i].fd;
		short is = list[i].revents;

		if (in && list[i].events & POLLIN && !(is & (POLLIN | POLLHUP | POLLERR)))
			FD_CLR(fd, in);
		if (out && list[i].events & POLLOUT && !(is & (POLLOUT | POLLERR)))
			FD_CLR(fd, out);
		if (exceptions && list[i].events & POLLPRI && !(is & POLLPRI))
			FD_CLR(fd, exceptions);
		heard += (in && FD_ISSET(fd, in)) + (out && FD_ISSET(fd, out)) +
			 (exceptions && FD_ISSET(fd, exceptions));
	}
	return heard;
}

int network_select(int count, fd_set *in, fd_set *out, fd_set *exceptions, struct timeval *time)
{
	struct timespec in_time = { 0 };

	if (time)
		in_time = (struct timespec){ time->tv_sec, time->tv_usec * 1000 };
	return select_until(count, in, out, exceptions, deadline_of(time ? &in_time : NULL));
}

int network_pselect(int count, fd_set *in, fd_set *out, fd_set *exceptions,
		    const struct timespec *time, const sigset_t *mask)
{
	(void)mask;
	return select_until(count, in, out, exceptions, deadline_of(time));
}

/* ---- epoll ---- */

int network_epoll_create1(int flags)
{
	int fd = endpoint_make(ENDPOINT_EPOLL, flags);

	if (fd >= 0) {
		endpoint_of(fd)->epoll = network_allocate(sizeof(struct epoll));
		if (!endpoint_of(fd)->epoll) {
			network_close(fd);
			errno = ENOMEM;
			return -1;
		}
	}
	return fd;
}

int network_epoll_create(int size)
{
	(void)size;
	return network_epoll_create1(0);
}

static struct epoll_entry *find(struct epoll *epoll, int fd)
{
	for (unsigned i = 0; i < epoll->count; i++)
		if (epoll->entry[i].fd == fd)
			return &epoll->entry[i];
	return NULL;
}

/* Those behind it keep their order. */
static void drop(struct epoll *epoll, struct epoll_entry *entry)
{
	for (; entry + 1 < epoll->entry + epoll->count; entry++)
		entry[0] = entry[1];
	epoll->count--;
}

void epoll_close(struct endpoint *endpoint)
{
	if (endpoint->epoll)
		network_free(endpoint->epoll, sizeof(*endpoint->epoll));
}

void epoll_forget(int fd)
{
	for (int other = 0; other < DESCRIPTORS; other++) {
		struct endpoint *e = endpoint_of(other);
		struct epoll_entry *entry = e && e->epoll ? find(e->epoll, fd) : NULL;

		if (entry)
			drop(e->epoll, entry);
	}
}

static int fail(int error)
{
	errno = error;
	return -1;
}

int network_epoll_ctl(int fd, int operation, int other, struct epoll_event *event)
{
	struct endpoint *e = endpoint_of(fd);
	struct epoll_entry *entry;

	if (!e || !e->epoll)
		return REAL(epoll_ctl)(fd, operation, other, event);
	entry = find(e->epoll, other);
	if (operation == EPOLL_CTL_ADD) {
		if (entry || e->epoll->count == ENTRIES)
			return fail(entry ? EEXIST : ENOSPC);
		entry = &e->epoll->entry[e->epoll->count++];
	} else if (!entry) {
		return fail(ENOENT);
	}
	if (operation == EPOLL_CTL_DEL)
		drop(e->epoll, entry);
	else
		*entry = (struct epoll_entry){ .fd = other, .event = *event };
	return 0;
}

/* What there is to tell: of changes only the new ones. */
static uint32_t events_of(const struct epoll_entry *entry)
{
	const struct endpoint *e = endpoint_of(entry->fd);
	uint32_t is;

	if (entry->off)
		return 0;
	is = (uint16_t)ready(entry->fd, (short)(entry->event.events & 0xffff));
	if (entry->event.events & EPOLLET) {
		if (e && e->news == entry->heard)
			is &= ~(uint32_t)(EPOLLIN | EPOLLRDHUP);
		if (entry->told_out)
			is &= ~(uint32_t)EPOLLOUT;
	}
	return is;
}

bool epoll_is_ready(const struct epoll *epoll)
{
	for (unsigned i = 0; i < epoll->count; i++)
		if (events_of(&epoll->entry[i]))
			return true;
	return false;
}

static int collect(struct epoll *epoll, struct epoll_event *events, int count)
{
	int heard = 0;

	for (unsigned i = 0; i < epoll->count && heard < count; i++) {
		struct epoll_entry *entry = &epoll->entry[i];
		uint32_t is = events_of(entry);

		if (!is)
			continue;
		if (is & EPOLLIN && endpoint_of(entry->fd))
			entry->heard = endpoint_of(entry->fd)->news;
		entry->told_out |= (is & EPOLLOUT) != 0;
		entry->off = entry->event.events & EPOLLONESHOT;
		events[heard].events = is;
		events[heard++].data = entry->event.data;
	}
	return heard;
}

int network_epoll_wait(int fd, struct epoll_event *events, int count, int milliseconds)
{
	struct endpoint *e = endpoint_of(fd);
	uint64_t deadline = milliseconds ? deadline_in(milliseconds) : 0;
	int heard;

	if (!e || !e->epoll)
		return REAL(epoll_wait)(fd, events, count, milliseconds);
	while (!(heard = collect(e->epoll, events, count)) && deadline > clock_elapsed())
		network_pass_time(deadline);
	return heard;
}

int network_epoll_pwait(int fd, struct epoll_event *events, int count, int milliseconds,
			const sigset_t *mask)
{
	(void)mask;
	return network_epoll_wait(fd, events, count, milliseconds);
}
