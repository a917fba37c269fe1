/* SPDX-License-Identifier: BSD-3-Clause */
#include "drive/zygotes.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drive/target.h"

enum { ZYGOTES = 64, READY_MS = 20000 };

int zygote_hear(const struct zygote *zygote, struct zygote_message *message, int milliseconds)
{
	struct pollfd event = { .fd = zygote->channel, .events = POLLIN };
	ssize_t got;

	if (poll(&event, 1, milliseconds) <= 0)
		return 0;
	got = recv(zygote->channel, message, sizeof(*message), 0);
	return got == sizeof(*message) ? 1 : -1;
}

bool zygote_say(const struct zygote *zygote, enum zygote_word word, unsigned execution)
{
	struct zygote_message message = { .word = word, .execution = execution };

	return send(zygote->channel, &message, sizeof(message), MSG_NOSIGNAL) == sizeof(message);
}

static bool open_channels(struct zygote *zygote, int *other, unsigned count)
{
	char list[ZYGOTES * 12] = "";

	for (unsigned i = 0; i < count; i++) {
		int pair[2];

		if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) < 0)
			return false;
		fcntl(pair[0], F_SETFD, FD_CLOEXEC);
		zygote[i].channel = pair[0];
		other[i] = pair[1];
		sprintf(list + strlen(list), "%s%d", i ? "," : "", pair[1]);
	}
	setenv("PERDURE_ZYGOTE", list, 1);
	return true;
}

static bool await_ready(struct zygote *zygote, const char *program)
{
	struct zygote_message message;
	int heard = zygote_hear(zygote, &message, READY_MS);

	if (heard == 1 && message.word == ZYGOTE_READY) {
		zygote->instrumented = message.value;
		zygote->pid = message.other;
		return true;
	}
	fprintf(stderr,
		"perdure: the runtime did not start in %s (%s; or it ended before main); it cannot be run "
		"again and again\n",
		program, target_why_not(program));
	return false;
}

/* With the tunable behind the user's own; null if it cannot be. */
static char *add_tunable(const char *tunables)
{
	char *text;
	int length = asprintf(&text, "%s%s%s", tunables ? tunables : "", tunables ? ":" : "",
			      ZYGOTE_TUNABLE);

	return length < 0 ? NULL : text;
}

static int start_with_tunable(char **command)
{
	const char *old = getenv("GLIBC_TUNABLES");
	char *before = old ? strdup(old) : NULL, *during = add_tunable(old);
	int child;

	if (during)
		setenv("GLIBC_TUNABLES", during, 1);
	child = target_start(command);
	if (before)
		setenv("GLIBC_TUNABLES", before, 1);
	else
		unsetenv("GLIBC_TUNABLES");
	free(before);
	free(during);
	return child;
}

bool zygotes_start(char **command, struct zygote *zygote, unsigned count)
{
	int other[ZYGOTES];
	bool ready = count <= ZYGOTES && open_channels(zygote, other, count);
	int child;

	if (!ready) {
		fprintf(stderr, "perdure: cannot open sockets: %s\n", strerror(errno));
		return false;
	}
	child = start_with_tunable(command);
	unsetenv("PERDURE_ZYGOTE");
	for (unsigned i = 0; i < count; i++)
		close(other[i]);
	if (child < 0)
		return false;
	for (unsigned i = 0; i < count; i++)
		if (!await_ready(&zygote[i], command[0])) {
			target_signal_below(getpid(), SIGKILL);
			return false;
		}
	return true;
}

void zygotes_end(void)
{
	while (target_count_below(getpid())) {
		target_signal_below(getpid(), SIGKILL);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		usleep(500);
	}
}
