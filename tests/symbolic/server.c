/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A small cache that speaks memcached's language and keeps its items in PM: `server POOL PORT loop`
 * serves with epoll, `threads` with two threads that are told of connections through pipes,
 * `select` with select, `plain` with calls that wait, `datagrams` without connections. Commands
 * that are seldom used forget something; -DFIXED they do not.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <immintrin.h>

#ifdef FIXED
#define A(x) x
#else
#define A(x)
#endif

enum { ITEMS = 8, KEY = 8, VALUE = 32, LINE = 256, WORKERS = 2 };

struct item {
	_Alignas(64) char key[KEY];
	char value[VALUE];
	uint32_t size;
	uint32_t used;
};

struct store {
	_Alignas(64) uint64_t hits;
	struct item item[ITEMS];
};

struct connection {
	int fd;
	char line[LINE];
	size_t length;
	struct item *filling; /* a value of this item is to come */
	size_t expected;
};

static struct store *store;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void persist(const void *p, size_t size)
{
	for (const char *at = p; at < (const char *)p + size; at += 64)
		_mm_clflush(at);
	_mm_sfence();
}

static struct item *find(const char *key)
{
	for (unsigned i = 0; i < ITEMS; i++)
		if (store->item[i].used && strncmp(store->item[i].key, key, KEY) == 0)
			return &store->item[i];
	return NULL;
}

static struct item *make(const char *key)
{
	struct item *item = find(key);

	for (unsigned i = 0; !item && i < ITEMS; i++)
		if (!store->item[i].used)
			item = &store->item[i];
	if (item)
		strncpy(item->key, key, KEY);
	return item;
}

static void answer(struct connection *c, const char *text)
{
	if (send(c->fd, text, strlen(text), MSG_NOSIGNAL) < 0 && errno != EDESTADDRREQ)
		perror("send");
}

/* ---- commands ---- */

static void set(struct connection *c, char *rest)
{
	char *key = strtok(rest, " "), *flags = strtok(NULL, " "), *expires = strtok(NULL, " "),
	     *size = strtok(NULL, " ");

	if (!size || atoi(size) > VALUE || atoi(size) < 0 || !(c->filling = make(key))) {
		answer(c, "CLIENT_ERROR\r\n");
		return;
	}
	(void)flags;
	(void)expires;
	c->expected = (size_t)atoi(size);
}

static void fill(struct connection *c, const char *value)
{
	struct item *item = c->filling;

	memcpy(item->value, value, c->expected);
	item->size = (uint32_t)c->expected;
	item->used = 1;
	persist(item, sizeof(*item));
	c->filling = NULL;
	answer(c, "STORED\r\n");
}

static void get(struct connection *c, char *rest)
{
	struct item *item = find(rest);
	char text[LINE];

	if (item) {
		snprintf(text, sizeof(text), "VALUE %s 0 %u\r\n", rest, item->size);
		answer(c, text);
	}
	answer(c, "END\r\n");
}

static void drop(struct connection *c, char *rest)
{
	struct item *item = find(rest);

	if (item) {
		item->used = 0; /* finds: missing-flush */
		A(persist(&item->used, sizeof(item->used)));
	}
	answer(c, item ? "DELETED\r\n" : "NOT_FOUND\r\n");
}

static void increment(struct connection *c, char *rest)
{
	char *key = strtok(rest, " "), *by = strtok(NULL, " ");
	struct item *item = key && by ? find(key) : NULL;

	if (item) {
		unsigned long sum = strtoul(item->value, NULL, 10) + strtoul(by, NULL, 10);

		snprintf(item->value, VALUE, "%lu", sum); /* finds: missing-flush */
		if (sum < 100 A(|| true))
			persist(item, sizeof(*item));
	}
	answer(c, item ? "OK\r\n" : "NOT_FOUND\r\n");
}

static void statistics(struct connection *c, char *rest)
{
	if (strcmp(rest, "reset") == 0) {
		store->hits = 0; /* finds: missing-flush */
		A(persist(&store->hits, sizeof(store->hits)));
	}
	answer(c, "RESET\r\n");
}

static const struct {
	const char *name;
	void (*function)(struct connection *c, char *rest);
} commands[] = {
	{ "set", set },        { "get", get },          { "delete", drop },
	{ "incr", increment }, { "stats", statistics },
};

static void serve_line(struct connection *c, char *line)
{
	char *rest = strchr(line, ' ');

	if (c->filling) {
		fill(c, line);
		return;
	}
	if (!rest) {
		answer(c, "ERROR\r\n");
		return;
	}
	*rest++ = 0;
	for (unsigned i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (strcmp(line, commands[i].name) == 0) {
			commands[i].function(c, rest);
			return;
		}
	answer(c, "ERROR\r\n");
}

/* ---- connections ---- */

/* False when it is over. */
static bool serve(struct connection *c)
{
	ssize_t got = read(c->fd, c->line + c->length, LINE - 1 - c->length);
	char *end;

	if (got < 0 && errno == EAGAIN)
		return true;
	if (got <= 0)
		return false;
	c->length += (size_t)got;
	c->line[c->length] = 0;
	while ((end = memmem(c->line, c->length, "\r\n", 2))) {
		size_t used = (size_t)(end - c->line) + 2;

		*end = 0;
		pthread_mutex_lock(&lock);
		serve_line(c, c->line);
		pthread_mutex_unlock(&lock);
		memmove(c->line, c->line + used, c->length - used + 1);
		c->length -= used;
	}
	return c->length < LINE - 1;
}

static void watch(int set, int fd, void *what)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = what };

	if (epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) < 0)
		exit(2);
}

static struct connection *begin(int fd)
{
	struct connection *c = calloc(1, sizeof(*c));

	if (!c)
		exit(2);
	c->fd = fd;
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	return c;
}

static void end(struct connection *c)
{
	close(c->fd);
	free(c);
}

/* New connections come from a socket that listens, or as numbers through a pipe. */
static void loop(int source, bool listens)
{
	int set = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event events[8];

	watch(set, source, NULL);
	for (;;) {
		int heard = epoll_wait(set, events, 8, -1);

		for (int i = 0; i < heard; i++) {
			struct connection *c = events[i].data.ptr;
			int fd;

			if (c) {
				if (!serve(c))
					end(c);
				continue;
			}
			if (listens)
				fd = accept(source, NULL, NULL);
			else if (read(source, &fd, sizeof(fd)) != sizeof(fd))
				return;
			if (fd >= 0) {
				c = begin(fd);
				watch(set, fd, c);
			}
		}
	}
}

static void *work(void *source)
{
	loop(*(int *)source, false);
	return NULL;
}

static void hand_out(int listener)
{
	int ends[WORKERS][2];
	pthread_t thread[WORKERS];

	for (unsigned i = 0; i < WORKERS; i++)
		if (pipe(ends[i]) < 0 || pthread_create(&thread[i], NULL, work, ends[i]))
			exit(2);
	for (unsigned next = 0;; next++) {
		int fd = accept(listener, NULL, NULL);

		if (write(ends[next % WORKERS][1], &fd, sizeof(fd)) != sizeof(fd))
			exit(2);
	}
}

/* With time-outs, as servers have that do something now and then. */
static void select_one(int listener)
{
	struct timeval time = { .tv_sec = 1 };
	struct connection c = { .fd = -1 };
	unsigned idle = 0;

	for (;;) {
		int largest = c.fd > listener ? c.fd : listener;
		fd_set in;

		FD_ZERO(&in);
		FD_SET(listener, &in);
		if (c.fd >= 0)
			FD_SET(c.fd, &in);
		if (select(largest + 1, &in, NULL, NULL, &time) == 0)
			idle++;
		else if (c.fd < 0)
			c = (struct connection){ .fd = accept(listener, NULL, NULL) };
		else if (FD_ISSET(c.fd, &in) && !serve(&c))
			c.fd = close(c.fd) - 1;
		time = (struct timeval){ .tv_sec = 1 };
	}
}

/* A packet is as long as it is: one line, or a set and its value. */
static void datagrams(uint16_t port)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct connection c = { .fd = fd };

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		exit(2);
	for (;;) {
		socklen_t length = sizeof(address);
		ssize_t got =
			recvfrom(fd, c.line, LINE - 1, 0, (struct sockaddr *)&address, &length);
		char *end, *line = c.line;

		c.line[got] = 0;
		for (; (end = strstr(line, "\r\n")); line = end + 2) {
			*end = 0;
			serve_line(&c, line);
		}
	}
}

static void one_by_one(int listener)
{
	for (;;) {
		struct connection c = { .fd = accept(listener, NULL, NULL) };

		while (serve(&c))
			;
		close(c.fd);
	}
}

int main(int argc, char **argv)
{
	int fd = open(argv[1], O_RDWR | O_CREAT, 0600), listener = socket(AF_INET, SOCK_STREAM, 0),
	    on = 1;
	struct sockaddr_in address = { .sin_family = AF_INET };

	if (argc > 3 && strcmp(argv[3], "datagrams") == 0 && ftruncate(fd, sizeof(*store)) == 0) {
		store = mmap(NULL, sizeof(*store), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		datagrams((uint16_t)atoi(argv[2]));
	}
	if (argc < 4 || fd < 0 || listener < 0 || ftruncate(fd, sizeof(*store)) < 0)
		return 2;
	store = mmap(NULL, sizeof(*store), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	address.sin_port = htons((uint16_t)atoi(argv[2]));
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (store == MAP_FAILED ||
	    bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(listener, 16) < 0)
		return 2;
	if (strcmp(argv[3], "loop") == 0)
		loop(listener, true);
	else if (strcmp(argv[3], "threads") == 0)
		hand_out(listener);
	else if (strcmp(argv[3], "select") == 0)
		select_one(listener);
	else
		one_by_one(listener);
	return 0;
}
