/* SPDX-License-Identifier: BSD-3-Clause */
/* System calls that wait for another thread, or another process. */
#include "threads.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>

static int ends[2], more[2], listener;
static struct sockaddr_in address;

static void *write_late(void *argument)
{
	usleep(2000);
	if (write(ends[1], "pipe", 4) != 4)
		abort();
	usleep(2000);
	if (write(more[1], "poll", 4) != 4)
		abort();
	return argument;
}

static void *read_both(void *argument)
{
	struct pollfd two[2] = { { .fd = ends[0], .events = POLLIN },
				 { .fd = more[0], .events = POLLIN } };
	char text[8] = "";

	if (read(ends[0], text, 4) != 4)
		abort();
	say("read %s", text);
	say("poll %d", poll(two, 2, -1));
	say("second %d", two[1].revents == POLLIN);
	if (read(more[0], text, 4) != 4)
		abort();
	say("read %s", text);
	say("timed out %d", poll(two, 2, 5));
	return argument;
}

static void *select_and_epoll(void *argument)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct timeval time = { .tv_usec = 3000 };
	int epoll = epoll_create1(0);
	char text[8] = "";
	fd_set set;

	epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event);
	say("epoll %d", epoll_wait(epoll, &event, 1, -1));
	FD_ZERO(&set);
	FD_SET(ends[0], &set);
	say("select %d", select(ends[0] + 1, &set, NULL, NULL, NULL));
	if (read(ends[0], text, 4) != 4)
		abort();
	FD_ZERO(&set);
	FD_SET(ends[0], &set);
	say("select timed out %d", select(ends[0] + 1, &set, NULL, NULL, &time));
	if (read(more[0], text, 4) != 4)
		abort();
	close(epoll);
	return argument;
}

enum { LINE = 64, LARGE = 4096 * LINE };

/* Either may be done first: what they say waits for both. */
static int written, lines_read;

static void *write_much(void *argument)
{
	char *bytes = calloc(LARGE, 1);

	memset(bytes, 'x', LARGE);
	for (int i = LINE - 1; i < LARGE; i += LINE)
		bytes[i] = '\n';
	written = (int)write(ends[1], bytes, LARGE);
	free(bytes);
	return argument;
}

static void *read_lines(void *argument)
{
	FILE *stream = fdopen(dup(ends[0]), "r");
	char text[2 * LINE], *line = NULL;
	size_t room = 0;
	int lines = 0;

	while (lines < LARGE / LINE) {
		if (!fgets(text, sizeof(text), stream) || getline(&line, &room, stream) != LINE)
			abort();
		lines += 2;
	}
	lines_read = lines;
	free(line);
	fclose(stream);
	return argument;
}

static void *serve(void *argument)
{
	for (int i = 0; i < 2; i++) {
		int client = accept(listener, NULL, NULL);
		char text[16] = "";

		if (recv(client, text, sizeof(text) - 1, 0) < 0)
			abort();
		say("served %s", text);
		if (send(client, "answer", 6, 0) != 6)
			abort();
		close(client);
	}
	return argument;
}

static void *ask(void *argument)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char text[16] = "";

	if (connect(fd, (struct sockaddr *)&address, sizeof(address)))
		abort();
	usleep(1000);
	if (send(fd, "question", 8, 0) != 8 || recv(fd, text, sizeof(text) - 1, 0) < 0)
		abort();
	say("got %s", text);
	close(fd);
	return argument;
}

static void *sleep_in_order(void *argument)
{
	usleep(10000 * (long)argument);
	say("woke %ld", (long)argument);
	return NULL;
}

static void *wait_for_child(void *argument)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		usleep(2000);
		_exit(5);
	}
	waitpid(child, &status, 0);
	say("child %d", WEXITSTATUS(status));
	return argument;
}

static void pair(void *(*a)(void *), void *(*b)(void *))
{
	pthread_t thread[2];

	pthread_create(&thread[0], NULL, a, NULL);
	pthread_create(&thread[1], NULL, b, NULL);
	pthread_join(thread[0], NULL);
	pthread_join(thread[1], NULL);
}

int main(void)
{
	socklen_t size = sizeof(address);
	pthread_t thread[4];

	if (pipe(ends) || pipe(more))
		abort();
	pair(read_both, write_late);
	pair(write_late, select_and_epoll);
	pair(read_lines, write_much);
	say("written %d, lines %d", written, lines_read);
	for (long i = 4; i-- > 0;)
		pthread_create(&thread[i], NULL, sleep_in_order, (void *)(i + 1));
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	pair(wait_for_child, wait_for_child);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) || listen(listener, 4) ||
	    getsockname(listener, (struct sockaddr *)&address, &size))
		abort();
	pthread_create(&thread[0], NULL, serve, NULL);
	run(ask);
	run(ask);
	pthread_join(thread[0], NULL);
	return 0;
}
