/* SPDX-License-Identifier: BSD-3-Clause */
/* perdure --send FILE: the client of a replay. It sends the packets of an input to a server. */
#include <arpa/inet.h>
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "cli/commands.h"
#include "report/inputs.h"

enum { PATIENCE_MS = 10000, RETRY_MS = 10, QUIET_MS = 150 };

static int connect_to(const char *address)
{
	struct sockaddr_un local = { .sun_family = AF_UNIX };
	struct sockaddr_in internet = { .sin_family = AF_INET };
	bool is_local = strncmp(address, "unix:", 5) == 0;
	int type = strncmp(address, "udp:", 4) == 0 ? SOCK_DGRAM : SOCK_STREAM;
	int fd = socket(is_local ? AF_UNIX : AF_INET, type, 0);
	const char *colon = strchr(address, ':');

	snprintf(local.sun_path, sizeof(local.sun_path), "%s", colon ? colon + 1 : "");
	internet.sin_port = htons((uint16_t)(colon ? atoi(colon + 1) : 0));
	internet.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd >= 0 && (is_local ? connect(fd, (void *)&local, sizeof(local))
				 : connect(fd, (void *)&internet, sizeof(internet))) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* It may still be about to begin. */
static int reach(const char *address)
{
	struct timespec pause = { .tv_nsec = RETRY_MS * 1000000 };
	int fd;

	for (int waited = 0; (fd = connect_to(address)) < 0 && waited < PATIENCE_MS;
	     waited += RETRY_MS)
		nanosleep(&pause, NULL);
	if (fd < 0)
		fprintf(stderr, "perdure: cannot reach the program at %s: %s\n", address,
			strerror(errno));
	return fd;
}

/* What it answers is dropped; when it is quiet, it has done what it was told to. */
static void hear(int fd)
{
	struct pollfd one = { .fd = fd, .events = POLLIN };
	char bytes[4096];

	while (poll(&one, 1, QUIET_MS) > 0)
		if (recv(fd, bytes, sizeof(bytes), 0) <= 0)
			return;
}

int command_send(char **words)
{
	json_t *json = *words ? json_load_file(*words, 0, NULL) : NULL;
	const json_t *source;
	int fd = -1;
	size_t i;

	json_array_foreach(json_object_get(json, "input"), i, source)
	{
		const char *kind, *name, *hex;
		size_t size;
		char *bytes;

		if (json_unpack((json_t *)source, "{s:s, s:s, s:s}", "kind", &kind, "name", &name,
				"hex", &hex) < 0 ||
		    strcmp(kind, "packet") != 0)
			continue;
		if (fd < 0 && (fd = reach(name)) < 0)
			return EXIT_CANNOT_WORK;
		bytes = inputs_unhex(hex, &size);
		if (send(fd, bytes, size, MSG_NOSIGNAL) != (ssize_t)size)
			perror("perdure: send");
		free(bytes);
		hear(fd);
	}
	if (fd < 0)
		return EXIT_CANNOT_WORK;
	close(fd);
	usleep(QUIET_MS * 1000);
	json_decref(json);
	return EXIT_NOTHING_FOUND;
}
