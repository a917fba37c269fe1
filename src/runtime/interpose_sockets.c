/* SPDX-License-Identifier: BSD-3-Clause */
/* Servers: the command wants to know when they listen, and starts them again and again. */
#include <errno.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "races/races.h"
#include "runtime/execution.h"
#include "symbolic/network.h"

PUBLIC int socket(int domain, int type, int protocol)
{
	if (network_on)
		return network_socket(domain, type, protocol);
	execution_note_input(INPUT_SOCKETS);
	return REAL(socket)(domain, type, protocol);
}

static void note_listening(void)
{
	if (runtime_execution)
		runtime_execution->listening = 1;
	if (runtime_session)
		runtime_session->serves = true;
}

/* The server before this one may have left its address in use for a while. */
PUBLIC int bind(int fd, const struct sockaddr *address, socklen_t length)
{
	int one = 1, type = 0, result, saved_errno;
	socklen_t size = sizeof(type);

	if (network_on)
		return network_bind(fd, address, length);
	if (runtime_execution || runtime_races)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	result = REAL(bind)(fd, address, length);
	saved_errno = errno;
	if (result == 0 && runtime_session &&
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_DGRAM)
		note_listening();
	errno = saved_errno;
	return result;
}

PUBLIC int listen(int fd, int backlog)
{
	int result = KERNEL(listen)(fd, backlog);

	if (result == 0 && !network_on)
		note_listening();
	return result;
}

/* ---- what matters only to a path of an exploration ---- */

#define PASSES_ON(name, parameters, call)                                                          \
	PUBLIC int name parameters                                                                 \
	{                                                                                          \
		return KERNEL(name) call;                                                          \
	}

PASSES_ON(connect, (int fd, const struct sockaddr *a, socklen_t l), (fd, a, l))
PASSES_ON(getsockname, (int fd, struct sockaddr *restrict a, socklen_t *restrict l), (fd, a, l))
PASSES_ON(getpeername, (int fd, struct sockaddr *restrict a, socklen_t *restrict l), (fd, a, l))
PASSES_ON(setsockopt, (int fd, int level, int name, const void *p, socklen_t l),
	  (fd, level, name, p, l))
PASSES_ON(getsockopt, (int fd, int level, int name, void *restrict p, socklen_t *restrict l),
	  (fd, level, name, p, l))
PASSES_ON(shutdown, (int fd, int how), (fd, how))
PASSES_ON(close, (int fd), (fd))
PASSES_ON(dup, (int fd), (fd))
PASSES_ON(dup2, (int fd, int other), (fd, other))
PASSES_ON(dup3, (int fd, int other, int flags), (fd, other, flags))
PASSES_ON(eventfd, (unsigned value, int flags), (value, flags))
PASSES_ON(epoll_create, (int size), (size))
PASSES_ON(epoll_create1, (int flags), (flags))
PASSES_ON(epoll_ctl, (int fd, int operation, int other, struct epoll_event *event),
	  (fd, operation, other, event))

PUBLIC int ioctl(int fd, unsigned long request, ...)
{
	va_list list;
	void *argument;

	va_start(list, request);
	argument = va_arg(list, void *);
	va_end(list);
	return network_on ? network_ioctl(fd, request, argument)
			  : REAL(ioctl)(fd, request, argument);
}
