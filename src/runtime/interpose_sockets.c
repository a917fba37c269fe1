/* SPDX-License-Identifier: BSD-3-Clause */
/* Servers: the command wants to know when they listen, and starts them again and again. */
#include <errno.h>
#include <sys/socket.h>

#include "races/races.h"
#include "runtime/execution.h"

PUBLIC int socket(int domain, int type, int protocol)
{
	execution_note_input(INPUT_SOCKETS);
	return REAL(socket)(domain, type, protocol);
}

static void note_listening(void)
{
	if (runtime_execution)
		runtime_execution->listening = 1;
	if (runtime_races)
		runtime_session->races.listens = true;
}

/* The server before this one may have left its address in use for a while. */
PUBLIC int bind(int fd, const struct sockaddr *address, socklen_t length)
{
	int one = 1, type = 0, result, saved_errno;
	socklen_t size = sizeof(type);

	if (runtime_execution || runtime_races)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	result = REAL(bind)(fd, address, length);
	saved_errno = errno;
	if (result == 0 && (runtime_execution || runtime_races) &&
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_DGRAM)
		note_listening();
	errno = saved_errno;
	return result;
}

PUBLIC int listen(int fd, int backlog)
{
	int result = REAL(listen)(fd, backlog);

	if (result == 0)
		note_listening();
	return result;
}
