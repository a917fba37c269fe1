/* SPDX-License-Identifier: BSD-3-Clause */
#include "symbolic/network.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "fibers/buffer.h"
#include "fibers/fibers.h"
#include "symbolic/symbolic.h"

enum { CLIENT_PORT = 40001, SERVER_PORT = 40000 };

bool network_on;
static struct endpoint endpoint[DESCRIPTORS];

static struct {
	int listener; /* + 1: whom it connects to */
	bool connected, silent;
	uint32_t packet, offset; /* what is to be read next */
	bool between;            /* the last one was read, and nobody has asked for more */
	unsigned idle;           /* so often time had to pass since it last said something */
} client;

void network_start(bool on)
{
	network_on = on;
}

void *network_allocate(size_t size)
{
	long got = syscall(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);

	return got == -1 ? NULL : (void *)got;
}

void network_free(void *p, size_t size)
{
	syscall(SYS_munmap, p, size);
}

/* ---- descriptors ---- */

struct endpoint *endpoint_of(int fd)
{
	return network_on && fd >= 0 && fd < DESCRIPTORS && endpoint[fd].kind ? &endpoint[fd]
									      : NULL;
}

int endpoint_make(enum endpoint_kind kind, int flags)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, "/dev/null",
			      O_RDWR | (flags & (O_NONBLOCK | O_CLOEXEC)), 0);

	if (fd >= DESCRIPTORS) {
		syscall(SYS_close, fd);
		errno = EMFILE;
		return -1;
	}
	if (fd >= 0)
		endpoint[fd] = (struct endpoint){ .kind = kind };
	return fd;
}

bool endpoint_waits(int fd, int flags)
{
	return !(flags & MSG_DONTWAIT) && !(syscall(SYS_fcntl, fd, F_GETFL, 0L) & O_NONBLOCK);
}

/* Is there another descriptor that leads to the same? */
static bool is_shared(const struct endpoint *e)
{
	for (int fd = 0; fd < DESCRIPTORS; fd++)
		if (&endpoint[fd] != e && endpoint[fd].kind == e->kind &&
		    (e->kind == ENDPOINT_CLIENT || (e->epoll && endpoint[fd].epoll == e->epoll)))
			return true;
	return false;
}

static void forget(int fd)
{
	struct endpoint *e = endpoint_of(fd);

	if (!e)
		return;
	if (e->kind == ENDPOINT_CLIENT && !is_shared(e))
		client.silent = true; /* nobody would hear it */
	queue_close(e);
	if (!is_shared(e))
		epoll_close(e);
	epoll_forget(fd);
	*e = (struct endpoint){ 0 };
}

int network_close(int fd)
{
	forget(fd);
	return REAL(close)(fd);
}

void network_duplicated(int from, int to)
{
	struct endpoint *e = endpoint_of(from);

	if (to < 0 || to >= DESCRIPTORS || to == from)
		return;
	forget(to);
	if (!e)
		return;
	endpoint[to] = *e;
	queue_share(e);
}

int network_dup(int fd)
{
	int other = REAL(dup)(fd);

	network_duplicated(fd, other);
	return other;
}

int network_dup2(int fd, int other)
{
	int result = REAL(dup2)(fd, other);

	network_duplicated(fd, result);
	return result;
}

int network_dup3(int fd, int other, int flags)
{
	int result = REAL(dup3)(fd, other, flags);

	network_duplicated(fd, result);
	return result;
}

bool network_unread(void)
{
	if (client.between) {
		client.between = false;
		client.offset = inputs_packet_size(client.packet);
	}
	if (!client.offset)
		return false;
	client.offset--;
	return true;
}

/* ---- the client ---- */

static bool has_more(void)
{
	return client.packet < inputs_packets();
}

static void say_next(struct endpoint *e)
{
	if (!client.between)
		return;
	client.between = false;
	client.packet++;
	client.offset = 0;
	e->news++;
}

/* What it has said: as much as was sent at once. */
static ssize_t hear(void *bytes, size_t size, bool peeks)
{
	uint32_t left = inputs_packet_size(client.packet) - client.offset;

	if (size > left)
		size = left;
	inputs_packet_read(client.packet, client.offset, bytes, (uint32_t)size);
	client.idle = 0;
	if (!peeks) {
		client.offset += (uint32_t)size;
		client.between = client.offset == inputs_packet_size(client.packet);
	}
	return (ssize_t)size;
}

static ssize_t client_read(int fd, void *bytes, size_t size, int flags)
{
	struct endpoint *e = &endpoint[fd];
	ssize_t got;

	if (client.between && !endpoint_waits(fd, flags)) {
		errno = EAGAIN;
		return -1;
	}
	say_next(e);
	got = has_more() ? hear(bytes, size, flags & MSG_PEEK) : 0;
	/* As much as was asked for, or all that will ever come. */
	while (flags & MSG_WAITALL && !(flags & MSG_PEEK) && got && (size_t)got < size) {
		say_next(e);
		if (!has_more())
			break;
		got += hear((char *)bytes + got, size - (size_t)got, false);
	}
	return got;
}

/* What does not fit is lost, as with all datagrams. */
static ssize_t datagram_read(int fd, void *bytes, size_t size, int flags)
{
	ssize_t got;
	uint32_t whole;

	while (!(endpoint_ready(fd, POLLIN) & POLLIN)) {
		if (!endpoint_waits(fd, flags)) {
			errno = EAGAIN;
			return -1;
		}
		network_pass_time(FIBER_NEVER);
	}
	whole = inputs_packet_size(client.packet);
	got = hear(bytes, size, flags & MSG_PEEK);
	if (!(flags & MSG_PEEK)) {
		client.between = true;
		client.silent = client.packet + 1 == inputs_packets();
	}
	if (flags & MSG_TRUNC)
		got = whole;
	return got;
}

/* Nobody waits for the last word of one who has nothing to say; others wait some time for timers.
 */
void network_pass_time(uint64_t deadline)
{
	enum { PATIENCE = 4, LONG = 200 };

	if (deadline == FIBER_NEVER ||
	    ++client.idle > (client.silent || !has_more() ? PATIENCE : LONG)) {
		buffer_drain();
		_exit(0);
	}
	if (deadline > clock_elapsed())
		clock_pass(deadline - clock_elapsed());
}

short endpoint_ready(int fd, short wanted)
{
	struct endpoint *e = &endpoint[fd];

	switch (e->kind) {
	case ENDPOINT_LISTENER:
		return client.listener == fd + 1 && !client.connected ? POLLIN : 0;
	case ENDPOINT_CLIENT:
		if (wanted & POLLIN)
			say_next(e);
		client.silent |= !has_more();
		return (client.between ? 0 : POLLIN) | (has_more() ? 0 : POLLRDHUP) | POLLOUT;
	case ENDPOINT_DATAGRAMS:
		if (wanted & POLLIN && !client.listener)
			say_next(e);
		return (!client.listener && !client.between && has_more() ? POLLIN : 0) | POLLOUT;
	case ENDPOINT_QUEUE:
		return queue_ready(e);
	case ENDPOINT_EVENT:
		return (e->counter ? POLLIN : 0) | POLLOUT;
	case ENDPOINT_EPOLL:
		return epoll_is_ready(e->epoll) ? POLLIN : 0;
	default:
		return POLLOUT | POLLHUP;
	}
}

/* ---- sockets ---- */

int network_socket(int domain, int type, int protocol)
{
	int kind = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC), fd;

	if ((domain != AF_INET && domain != AF_INET6 && domain != AF_UNIX) ||
	    (kind != SOCK_STREAM && kind != SOCK_DGRAM))
		return REAL(socket)(domain, type, protocol);
	fd = endpoint_make(kind == SOCK_DGRAM ? ENDPOINT_DATAGRAMS : ENDPOINT_SOCKET, type);
	if (fd >= 0) {
		endpoint[fd].domain = domain;
		endpoint[fd].type = kind;
		endpoint[fd].address.ss_family = (sa_family_t)domain;
		endpoint[fd].length = sizeof(struct sockaddr_in);
	}
	return fd;
}

/* Where a native program would be found. */
static void tell_address(const struct endpoint *e)
{
	const struct sockaddr_in *ipv4 = (const void *)&e->address;
	const struct sockaddr_in6 *ipv6 = (const void *)&e->address;
	const struct sockaddr_un *local = (const void *)&e->address;
	const char *way = e->type == SOCK_DGRAM ? "udp" : "tcp";
	in_port_t port = e->address.ss_family == AF_INET ? ipv4->sin_port : ipv6->sin6_port;
	char text[EXPLORE_NAME];

	if (e->address.ss_family == AF_UNIX)
		REAL(snprintf)(text, sizeof(text), "unix:%s", local->sun_path);
	else
		REAL(snprintf)(text, sizeof(text), "%s:%u", way, ntohs(port));
	inputs_name_packets(text);
}

int network_bind(int fd, const struct sockaddr *address, socklen_t length)
{
	struct endpoint *e = endpoint_of(fd);
	struct sockaddr_in *internet; /* the port is at the same place in both */

	if (!e)
		return REAL(bind)(fd, address, length);
	if (length > sizeof(e->address))
		length = sizeof(e->address);
	memcpy(&e->address, address, length);
	e->length = length;
	internet = (void *)&e->address;
	if (e->address.ss_family != AF_UNIX && !internet->sin_port)
		internet->sin_port = htons(SERVER_PORT);
	if (e->kind == ENDPOINT_DATAGRAMS && !client.listener)
		tell_address(e);
	return 0;
}

int network_listen(int fd, int backlog)
{
	struct endpoint *e = endpoint_of(fd);

	if (!e)
		return REAL(listen)(fd, backlog);
	e->kind = ENDPOINT_LISTENER;
	if (!client.listener) {
		client.listener = fd + 1;
		e->news++;
		tell_address(e);
	}
	return 0;
}

int network_connect(int fd, const struct sockaddr *address, socklen_t length)
{
	struct endpoint *e = endpoint_of(fd);

	if (!e)
		return REAL(connect)(fd, address, length);
	if (e->kind == ENDPOINT_DATAGRAMS)
		return 0;
	errno = ECONNREFUSED; /* there is nobody but the client */
	return -1;
}

static void give_address(const struct sockaddr_storage *from, socklen_t size,
			 struct sockaddr *address, socklen_t *length)
{
	if (!address || !length)
		return;
	memcpy(address, from, size < *length ? size : *length);
	*length = size;
}

static void give_client(int domain, struct sockaddr *address, socklen_t *length)
{
	struct sockaddr_storage own = { .ss_family = (sa_family_t)domain };
	struct sockaddr_in *ipv4 = (void *)&own;
	struct sockaddr_in6 *ipv6 = (void *)&own;

	if (domain == AF_INET)
		ipv4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else if (domain == AF_INET6)
		ipv6->sin6_addr = in6addr_loopback;
	if (domain != AF_UNIX)
		ipv4->sin_port = htons(CLIENT_PORT);
	give_address(&own,
		     domain == AF_UNIX    ? sizeof(sa_family_t)
		     : domain == AF_INET6 ? sizeof(*ipv6)
					  : sizeof(*ipv4),
		     address, length);
}

int network_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
	struct endpoint *e = endpoint_of(fd);
	int connection;

	if (!e)
		return REAL(accept4)(fd, address, length, flags);
	if (e->kind != ENDPOINT_LISTENER) {
		errno = EINVAL;
		return -1;
	}
	while (!endpoint_ready(fd, POLLIN)) {
		if (!endpoint_waits(fd, 0)) {
			errno = EAGAIN;
			return -1;
		}
		network_pass_time(FIBER_NEVER);
	}
	connection = endpoint_make(ENDPOINT_CLIENT, flags);
	if (connection < 0)
		return -1;
	client.connected = true;
	endpoint[connection].domain = e->domain;
	endpoint[connection].type = e->type;
	endpoint[connection].address = e->address;
	endpoint[connection].length = e->length;
	endpoint[connection].news = 1;
	give_client(e->domain, address, length);
	return connection;
}

int network_accept(int fd, struct sockaddr *address, socklen_t *length)
{
	return network_accept4(fd, address, length, 0);
}

int network_getsockname(int fd, struct sockaddr *address, socklen_t *length)
{
	struct endpoint *e = endpoint_of(fd);

	if (!e)
		return REAL(getsockname)(fd, address, length);
	give_address(&e->address, e->length, address, length);
	return 0;
}

int network_getpeername(int fd, struct sockaddr *address, socklen_t *length)
{
	struct endpoint *e = endpoint_of(fd);

	if (!e)
		return REAL(getpeername)(fd, address, length);
	if (e->kind != ENDPOINT_CLIENT) {
		errno = ENOTCONN;
		return -1;
	}
	give_client(e->domain, address, length);
	return 0;
}

int network_setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
	return endpoint_of(fd) ? 0 : REAL(setsockopt)(fd, level, name, value, length);
}

int network_getsockopt(int fd, int level, int name, void *value, socklen_t *length)
{
	enum { BUFFER = 212992 };
	struct endpoint *e = endpoint_of(fd);
	int answer = 0;

	if (!e)
		return REAL(getsockopt)(fd, level, name, value, length);
	if (level == SOL_SOCKET && name == SO_TYPE)
		answer = e->type;
	else if (level == SOL_SOCKET && (name == SO_SNDBUF || name == SO_RCVBUF))
		answer = BUFFER;
	else if (level == SOL_SOCKET && name == SO_ACCEPTCONN)
		answer = e->kind == ENDPOINT_LISTENER;
	if (*length > sizeof(answer))
		memset(value, 0, *length);
	memcpy(value, &answer, *length < sizeof(answer) ? *length : sizeof(answer));
	return 0;
}

int network_shutdown(int fd, int how)
{
	struct endpoint *e = endpoint_of(fd);

	if (!e)
		return REAL(shutdown)(fd, how);
	if (e->kind == ENDPOINT_CLIENT && how != SHUT_WR)
		client.silent = true;
	e->silent |= how != SHUT_RD;
	return 0;
}

int network_ioctl(int fd, unsigned long request, void *argument)
{
	struct endpoint *e = endpoint_of(fd);
	long flags;

	if (e && request == FIONREAD) {
		*(int *)argument =
			e->kind == ENDPOINT_CLIENT && !client.between && has_more()
				? (int)(inputs_packet_size(client.packet) - client.offset)
				: 0;
		return 0;
	}
	if (e && request == FIONBIO) {
		flags = syscall(SYS_fcntl, fd, F_GETFL, 0L) & ~O_NONBLOCK;
		return (int)syscall(SYS_fcntl, fd, F_SETFL,
				    flags | (*(int *)argument ? O_NONBLOCK : 0));
	}
	return REAL(ioctl)(fd, request, argument);
}

/* ---- reading and writing ---- */

static ssize_t get(int fd, void *bytes, size_t size, int flags)
{
	switch (endpoint[fd].kind) {
	case ENDPOINT_CLIENT:
		return client_read(fd, bytes, size, flags);
	case ENDPOINT_DATAGRAMS:
		return datagram_read(fd, bytes, size, flags);
	case ENDPOINT_QUEUE:
		return queue_read(fd, bytes, size);
	case ENDPOINT_EVENT:
		return event_count_read(fd, bytes, size);
	default:
		errno = ENOTCONN;
		return -1;
	}
}

static ssize_t put(int fd, const void *bytes, size_t size)
{
	if (endpoint[fd].silent) {
		errno = EPIPE;
		return -1;
	}
	switch (endpoint[fd].kind) {
	case ENDPOINT_CLIENT:
	case ENDPOINT_DATAGRAMS:
		return (ssize_t)size;
	case ENDPOINT_QUEUE:
		return queue_write(fd, bytes, size);
	case ENDPOINT_EVENT:
		return event_count_write(fd, bytes, size);
	default:
		errno = ENOTCONN;
		return -1;
	}
}

/* Into, or from, one piece after the other, as long as there is more. */
static ssize_t get_all(int fd, const struct iovec *vector, size_t count, int flags)
{
	ssize_t done = 0;

	for (size_t i = 0; i < count; i++) {
		ssize_t n =
			done ? get(fd, vector[i].iov_base, vector[i].iov_len, flags | MSG_DONTWAIT)
			     : get(fd, vector[i].iov_base, vector[i].iov_len, flags);

		if (n < 0)
			return done ? done : n;
		done += n;
		if ((size_t)n < vector[i].iov_len ||
		    (endpoint[fd].kind == ENDPOINT_CLIENT && client.between))
			break;
	}
	return done;
}

static ssize_t put_all(int fd, const struct iovec *vector, size_t count)
{
	ssize_t done = 0;

	for (size_t i = 0; i < count; i++) {
		ssize_t n = put(fd, vector[i].iov_base, vector[i].iov_len);

		if (n < 0)
			return done ? done : n;
		done += n;
	}
	return done;
}

ssize_t network_read(int fd, void *bytes, size_t size)
{
	return endpoint_of(fd) ? get(fd, bytes, size, 0) : REAL(read)(fd, bytes, size);
}

ssize_t network_readv(int fd, const struct iovec *vector, int count)
{
	return endpoint_of(fd) ? get_all(fd, vector, (size_t)count, 0)
			       : REAL(readv)(fd, vector, count);
}

ssize_t network_recv(int fd, void *bytes, size_t size, int flags)
{
	return endpoint_of(fd) ? get(fd, bytes, size, flags) : REAL(recv)(fd, bytes, size, flags);
}

ssize_t network_recvfrom(int fd, void *bytes, size_t size, int flags, struct sockaddr *address,
			 socklen_t *length)
{
	struct endpoint *e = endpoint_of(fd);

	if (!e)
		return REAL(recvfrom)(fd, bytes, size, flags, address, length);
	give_client(e->domain, address, length);
	return get(fd, bytes, size, flags);
}

ssize_t network_recvmsg(int fd, struct msghdr *header, int flags)
{
	struct endpoint *e = endpoint_of(fd);

	if (!e)
		return REAL(recvmsg)(fd, header, flags);
	if (header->msg_name)
		give_client(e->domain, header->msg_name, &header->msg_namelen);
	header->msg_controllen = 0;
	header->msg_flags = 0;
	return get_all(fd, header->msg_iov, header->msg_iovlen, flags);
}

ssize_t network_write(int fd, const void *bytes, size_t size)
{
	return endpoint_of(fd) ? put(fd, bytes, size) : REAL(write)(fd, bytes, size);
}

ssize_t network_writev(int fd, const struct iovec *vector, int count)
{
	return endpoint_of(fd) ? put_all(fd, vector, (size_t)count)
			       : REAL(writev)(fd, vector, count);
}

ssize_t network_send(int fd, const void *bytes, size_t size, int flags)
{
	return endpoint_of(fd) ? put(fd, bytes, size) : REAL(send)(fd, bytes, size, flags);
}

ssize_t network_sendto(int fd, const void *bytes, size_t size, int flags,
		       const struct sockaddr *address, socklen_t length)
{
	return endpoint_of(fd) ? put(fd, bytes, size)
			       : REAL(sendto)(fd, bytes, size, flags, address, length);
}

ssize_t network_sendmsg(int fd, const struct msghdr *header, int flags)
{
	return endpoint_of(fd) ? put_all(fd, header->msg_iov, header->msg_iovlen)
			       : REAL(sendmsg)(fd, header, flags);
}
