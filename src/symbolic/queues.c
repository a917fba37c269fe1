/* SPDX-License-Identifier: BSD-3-Clause */
/* Pipes, pairs of sockets and events: what a program tells itself. */
#include <errno.h>

#include "fibers/fibers.h"
#include "symbolic/network.h"
#include "symbolic/symbolic.h"

enum { ROOM = 1 << 16 };

struct queue {
	uint32_t first, count;
	unsigned readers, writers;
	char bytes[ROOM];
};

static struct queue *make_queue(void)
{
	struct queue *queue = network_allocate(sizeof(*queue));

	if (queue)
		queue->readers = queue->writers = 1;
	return queue;
}

static void leave(struct queue *queue, unsigned *side)
{
	if (--*side == 0 && !queue->readers && !queue->writers)
		network_free(queue, sizeof(*queue));
}

void queue_close(struct endpoint *endpoint)
{
	if (endpoint->in)
		leave(endpoint->in, &endpoint->in->readers);
	if (endpoint->out)
		leave(endpoint->out, &endpoint->out->writers);
	endpoint->in = endpoint->out = NULL;
}

void queue_share(struct endpoint *endpoint)
{
	if (endpoint->in)
		endpoint->in->readers++;
	if (endpoint->out)
		endpoint->out->writers++;
}

short queue_ready(const struct endpoint *endpoint)
{
	const struct queue *in = endpoint->in, *out = endpoint->out;

	return (in && in->count ? POLLIN : 0) | (in && !in->writers ? POLLHUP | POLLIN : 0) |
	       (out && out->count < ROOM ? POLLOUT : 0) | (out && !out->readers ? POLLERR : 0);
}

/* Of one piece without a gap; what is symbolic stays so. */
static uint32_t copy_piece(struct queue *queue, char *bytes, uint32_t size, bool reads)
{
	uint32_t at = (queue->first + (reads ? 0 : queue->count)) % ROOM;

	if (size > ROOM - at)
		size = ROOM - at;
	memory_copy(reads ? bytes : queue->bytes + at, reads ? queue->bytes + at : bytes, size);
	__builtin_memcpy(reads ? bytes : queue->bytes + at, reads ? queue->bytes + at : bytes,
			 size);
	if (reads) {
		queue->first = (queue->first + size) % ROOM;
		queue->count -= size;
	} else {
		queue->count += size;
	}
	return size;
}

ssize_t queue_read(int fd, void *bytes, size_t size)
{
	struct endpoint *endpoint = endpoint_of(fd);
	struct queue *queue = endpoint->in;
	size_t done = 0;

	if (!queue) {
		errno = EBADF;
		return -1;
	}
	while (!queue->count && queue->writers) {
		if (!endpoint_waits(fd, 0)) {
			errno = EAGAIN;
			return -1;
		}
		network_pass_time(FIBER_NEVER);
	}
	while (done < size && queue->count)
		done += copy_piece(
			queue, (char *)bytes + done,
			(uint32_t)(size - done < queue->count ? size - done : queue->count), true);
	return (ssize_t)done;
}

/* The other end of it hears the news. */
static void tell(const struct queue *queue)
{
	for (int fd = 0; fd < DESCRIPTORS; fd++) {
		struct endpoint *other = endpoint_of(fd);

		if (other && other->in == queue)
			other->news++;
	}
}

ssize_t queue_write(int fd, const void *bytes, size_t size)
{
	struct queue *queue = endpoint_of(fd)->out;
	size_t done = 0;

	if (!queue || !queue->readers) {
		errno = queue ? EPIPE : EBADF;
		return -1;
	}
	while (queue->count == ROOM) {
		if (!endpoint_waits(fd, 0)) {
			errno = EAGAIN;
			return -1;
		}
		network_pass_time(FIBER_NEVER);
	}
	while (done < size && queue->count < ROOM)
		done += copy_piece(queue, (char *)bytes + done,
				   (uint32_t)(size - done < ROOM - queue->count
						      ? size - done
						      : ROOM - queue->count),
				   false);
	tell(queue);
	return (ssize_t)done;
}

/* ---- making them ---- */

static int make_pair(int fds[2], int flags, bool both_ways)
{
	struct queue *there = make_queue(), *back = both_ways ? make_queue() : NULL;

	if (!there || (both_ways && !back)) {
		errno = ENOMEM;
		return -1;
	}
	fds[0] = endpoint_make(ENDPOINT_QUEUE, flags);
	fds[1] = endpoint_make(ENDPOINT_QUEUE, flags);
	if (fds[0] < 0 || fds[1] < 0)
		return -1;
	endpoint_of(fds[0])->in = there;
	endpoint_of(fds[1])->out = there;
	endpoint_of(fds[0])->out = back;
	endpoint_of(fds[1])->in = back;
	return 0;
}

int network_pipe(int fds[2])
{
	return make_pair(fds, 0, false);
}

int network_pipe2(int fds[2], int flags)
{
	return make_pair(fds, flags, false);
}

int network_socketpair(int domain, int type, int protocol, int fds[2])
{
	(void)domain;
	(void)protocol;
	return make_pair(fds, type, true);
}

/* ---- events ---- */

int network_eventfd(unsigned value, int flags)
{
	int fd = endpoint_make(ENDPOINT_EVENT, flags);

	if (fd >= 0) {
		endpoint_of(fd)->counter = value;
		endpoint_of(fd)->one_by_one = flags & EFD_SEMAPHORE;
	}
	return fd;
}

ssize_t event_count_read(int fd, void *bytes, size_t size)
{
	struct endpoint *e = endpoint_of(fd);
	uint64_t value;

	if (size < sizeof(value)) {
		errno = EINVAL;
		return -1;
	}
	while (!e->counter) {
		if (!endpoint_waits(fd, 0)) {
			errno = EAGAIN;
			return -1;
		}
		network_pass_time(FIBER_NEVER);
	}
	value = e->one_by_one ? 1 : e->counter;
	e->counter -= value;
	__builtin_memcpy(bytes, &value, sizeof(value));
	return sizeof(value);
}

ssize_t event_count_write(int fd, const void *bytes, size_t size)
{
	struct endpoint *e = endpoint_of(fd);
	uint64_t value;

	if (size < sizeof(value)) {
		errno = EINVAL;
		return -1;
	}
	__builtin_memcpy(&value, bytes, sizeof(value));
	e->counter += value;
	e->news++;
	return sizeof(value);
}

int network_eventfd_read(int fd, eventfd_t *value)
{
	if (!endpoint_of(fd))
		return REAL(eventfd_read)(fd, value);
	return event_count_read(fd, value, sizeof(*value)) == sizeof(*value) ? 0 : -1;
}

int network_eventfd_write(int fd, eventfd_t value)
{
	if (!endpoint_of(fd))
		return REAL(eventfd_write)(fd, value);
	return event_count_write(fd, &value, sizeof(value)) == sizeof(value) ? 0 : -1;
}
