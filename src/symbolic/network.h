/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A network with one client, inside a path: it connects to the first socket that listens, sends the
 * packets of --sym-socket and --sym-packet one after the other, each when the program waits for
 * more, drops what it is answered, and hangs up. When all of the program waits and the client has
 * nothing left to say, the path is over.
 *
 * Descriptors of it are real ones of /dev/null; who reads, writes or waits for them comes here.
 * Pipes, events and epoll are here, too: in the kernel all paths would share them.
 *
 *   network.c  sockets and the client
 *   queues.c   pipes, pairs of sockets, events
 *   polling.c  who waits for what
 */
#ifndef SYMBOLIC_NETWORK_H
#define SYMBOLIC_NETWORK_H

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "runtime/runtime.h"
#include "symbolic/descriptors.h"

extern HIDDEN bool network_on;

/* The network's, or the real one. */
#define KERNEL(name) (__builtin_expect(network_on, 0) ? network_##name : REAL(name))

enum endpoint_kind {
	ENDPOINT_NONE, /* not of this network */
	ENDPOINT_SOCKET,
	ENDPOINT_LISTENER,
	ENDPOINT_CLIENT, /* the connection to it */
	ENDPOINT_DATAGRAMS,
	ENDPOINT_QUEUE,
	ENDPOINT_EVENT,
	ENDPOINT_EPOLL,
};

struct queue;
struct epoll;

struct endpoint {
	enum endpoint_kind kind;
	uint32_t news;          /* counts what has come: for those who want to hear of changes */
	struct queue *in, *out; /* ENDPOINT_QUEUE; null: it cannot */
	uint64_t counter;       /* ENDPOINT_EVENT */
	bool one_by_one;        /* … is a semaphore */
	struct epoll *epoll;
	bool silent; /* shutdown: nothing is written any more */
	int domain, type;
	struct sockaddr_storage address;
	socklen_t length;
};

/* Null if it is not of this network. */
HIDDEN struct endpoint *endpoint_of(int fd);
/* A new descriptor; -1 if there is none. Flags as open has them. */
HIDDEN int endpoint_make(enum endpoint_kind kind, int flags);
HIDDEN bool endpoint_waits(int fd, int flags);
/* What poll would say. The client says the next thing to one who waits for it. */
HIDDEN short endpoint_ready(int fd, short wanted);
/* Somebody has to wait until then, and nothing can happen: time passes, or the path ends. */
HIDDEN void network_pass_time(uint64_t deadline);
HIDDEN void network_start(bool on);
/* The last byte of the client was not meant to be read yet; false if there is none. */
HIDDEN bool network_unread(void);
/* Another descriptor leads to the same. */
HIDDEN void network_duplicated(int from, int to);
/* Not from the program's heap, which may be PM. Null if there is no more. */
HIDDEN void *network_allocate(size_t size);
HIDDEN void network_free(void *p, size_t size);

HIDDEN void queue_close(struct endpoint *endpoint);
HIDDEN void queue_share(struct endpoint *endpoint);
HIDDEN short queue_ready(const struct endpoint *endpoint);
HIDDEN ssize_t queue_read(int fd, void *bytes, size_t size);
HIDDEN ssize_t queue_write(int fd, const void *bytes, size_t size);
HIDDEN ssize_t event_count_read(int fd, void *bytes, size_t size);
HIDDEN ssize_t event_count_write(int fd, const void *bytes, size_t size);
HIDDEN bool epoll_is_ready(const struct epoll *epoll);
/* One that is closed is in no set any more; and a set itself. */
HIDDEN void epoll_forget(int fd);
HIDDEN void epoll_close(struct endpoint *endpoint);

/* Some bytes were read from there. */
static inline void network_filled(int fd, void *p, size_t size, const struct frame *frame)
{
	if (endpoint_of(fd))
		event_received(p, size, frame);
	else
		event_stored(p, size, frame);
}

HIDDEN int network_socket(int domain, int type, int protocol);
HIDDEN int network_bind(int fd, const struct sockaddr *address, socklen_t length);
HIDDEN int network_listen(int fd, int backlog);
HIDDEN int network_connect(int fd, const struct sockaddr *address, socklen_t length);
HIDDEN int network_accept(int fd, struct sockaddr *address, socklen_t *length);
HIDDEN int network_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags);
HIDDEN int network_getsockname(int fd, struct sockaddr *address, socklen_t *length);
HIDDEN int network_getpeername(int fd, struct sockaddr *address, socklen_t *length);
HIDDEN int network_setsockopt(int fd, int level, int name, const void *value, socklen_t length);
HIDDEN int network_getsockopt(int fd, int level, int name, void *value, socklen_t *length);
HIDDEN int network_shutdown(int fd, int how);
HIDDEN int network_close(int fd);
HIDDEN int network_dup(int fd);
HIDDEN int network_dup2(int fd, int other);
HIDDEN int network_dup3(int fd, int other, int flags);
HIDDEN int network_ioctl(int fd, unsigned long request, void *argument);
HIDDEN int network_pipe(int fds[2]);
HIDDEN int network_pipe2(int fds[2], int flags);
HIDDEN int network_socketpair(int domain, int type, int protocol, int fds[2]);
HIDDEN int network_eventfd(unsigned value, int flags);
HIDDEN int network_eventfd_read(int fd, eventfd_t *value);
HIDDEN int network_eventfd_write(int fd, eventfd_t value);
HIDDEN int network_epoll_create(int size);
HIDDEN int network_epoll_create1(int flags);
HIDDEN int network_epoll_ctl(int fd, int operation, int other, struct epoll_event *event);
HIDDEN int network_epoll_wait(int fd, struct epoll_event *events, int count, int milliseconds);
HIDDEN int network_epoll_pwait(int fd, struct epoll_event *events, int count, int milliseconds,
			       const sigset_t *mask);
HIDDEN int network_poll(struct pollfd *list, nfds_t count, int milliseconds);
HIDDEN int network_ppoll(struct pollfd *list, nfds_t count, const struct timespec *time,
			 const sigset_t *mask);
HIDDEN int network_select(int count, fd_set *in, fd_set *out, fd_set *exceptions,
			  struct timeval *time);
HIDDEN int network_pselect(int count, fd_set *in, fd_set *out, fd_set *exceptions,
			   const struct timespec *time, const sigset_t *mask);
HIDDEN ssize_t network_read(int fd, void *bytes, size_t size);
HIDDEN ssize_t network_readv(int fd, const struct iovec *vector, int count);
HIDDEN ssize_t network_recv(int fd, void *bytes, size_t size, int flags);
HIDDEN ssize_t network_recvfrom(int fd, void *bytes, size_t size, int flags,
				struct sockaddr *address, socklen_t *length);
HIDDEN ssize_t network_recvmsg(int fd, struct msghdr *header, int flags);
HIDDEN ssize_t network_write(int fd, const void *bytes, size_t size);
HIDDEN ssize_t network_writev(int fd, const struct iovec *vector, int count);
HIDDEN ssize_t network_send(int fd, const void *bytes, size_t size, int flags);
HIDDEN ssize_t network_sendto(int fd, const void *bytes, size_t size, int flags,
			      const struct sockaddr *address, socklen_t length);
HIDDEN ssize_t network_sendmsg(int fd, const struct msghdr *header, int flags);

#endif
