/* SPDX-License-Identifier: BSD-3-Clause */
/* PM at an address that the program insists on. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "pm.h"

enum { SIZE = 1 << 20 };

struct root {
	_Alignas(64) uint64_t value;
	_Alignas(64) volatile uint64_t valid;
	_Alignas(64) char text[64];
	_Alignas(64) uint64_t extra;
};

__attribute__((noinline, noipa)) static void write_text(struct root *root, const char *text)
{
	strcpy(root->text, text);
	PERSIST(root->text);
}

static void fill(struct root *root)
{
	root->value = 42;
#ifndef UNORDERED
	PERSIST(&root->value);
#endif
	write_text(root, "hello");
	root->valid = 1;
	PERSIST(&root->valid);
#ifdef UNORDERED
	PERSIST(&root->value);
#endif
#ifdef MISSING
	root->extra = 1;
#endif
}

static void *idle(void *nothing)
{
	return nothing;
}

int main(int argc, char **argv)
{
	void *where = (void *)strtoul(argv[2], NULL, 16);
	int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
	struct root *root;
	pthread_t thread;

#ifdef EARLY
	pthread_create(&thread, NULL, idle, NULL);
	pthread_join(thread, NULL);
#endif
	if (argc == 3 && ftruncate(fd, SIZE) < 0)
		return 1;
	if (lseek(fd, 0, SEEK_END) < SIZE)
		return 0; /* the crash was before that */
	root = mmap(where, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
	if (root != where)
		return 2;
	if (argc == 3)
		fill(root);
	else if (root->valid && root->value != 42)
		abort();
	if (root->valid)
		printf("%s %lu\n", root->text, root->value);
	munmap(root, SIZE);
	return 0;
}
