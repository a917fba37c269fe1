/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A counter in PM that obeys short commands: "set 7", "add 3", "neg". No test has thought of
 * what "neg" does to a counter that is 0 already: it takes a short cut, and with it no flush.
 */
#include <emmintrin.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct counter {
	_Alignas(64) int64_t value;
	_Alignas(64) uint64_t changes;
};

static void persist(const void *p)
{
	_mm_clflush(p);
	_mm_sfence();
}

static void change(struct counter *counter, int64_t value)
{
	counter->value = value;
	persist(&counter->value);
	counter->changes++;
	persist(&counter->changes);
}

static int obey(struct counter *counter, const char *command)
{
	char digit = command[3] ? command[4] : 0;

	if (strncmp(command, "neg", 3) == 0) {
		if (counter->value == 0)
			counter->changes++;
		else
			change(counter, -counter->value);
		return 0;
	}
	if (digit < '0' || digit > '9')
		return 1;
	if (strncmp(command, "set ", 4) == 0)
		change(counter, digit - '0');
	else if (strncmp(command, "add ", 4) == 0)
		change(counter, counter->value + digit - '0');
	else
		return 1;
	return 0;
}

int main(int argc, char **argv)
{
	struct counter *counter;
	int fd, status = 0;

	if (argc < 2) {
		fprintf(stderr, "usage: %s FILE [COMMAND...]\n", argv[0]);
		return 2;
	}
	fd = open(argv[1], O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, sizeof(*counter)) < 0)
		return 2;
	counter = mmap(NULL, sizeof(*counter), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (counter == MAP_FAILED)
		return 2;
	for (int i = 2; i < argc; i++)
		status |= obey(counter, argv[i]);
	printf("the counter is at %ld\n", counter->value);
	return status;
}
