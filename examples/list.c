/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A persistent list of numbers with four mistakes that are easy to make and hard to see: each
 * element survives a crash, but the length does not, and flushes and fences are wasted.
 */
#include <fcntl.h>
#include <immintrin.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define LINE 64

struct list {
	long length;
	char padding[LINE - sizeof(long)];
	long element[1000];
};

static void flush(const void *address, size_t size)
{
	for (size_t offset = 0; offset < size; offset += LINE)
		_mm_clflushopt((char *)address + offset);
}

static void list_append(struct list *list, long number)
{
	list->element[list->length] = number;
	flush(&list->element[list->length], sizeof(number));
	_mm_sfence();
	list->length++; /* bug: never flushed */
}

static void list_clear(struct list *list)
{
	for (long i = 0; i < list->length; i++)
		list->element[i] = 0;
	flush(list->element, list->length * sizeof(long)); /* bug: no fence after it */
}

static void list_sync(struct list *list)
{
	flush(list->element, sizeof(long)); /* bug: was flushed by list_append */
	_mm_sfence();
	_mm_sfence(); /* bug: nothing left to order */
}

int main(int argc, char **argv)
{
	int fd = open(argc > 1 ? argv[1] : "list.pm", O_RDWR | O_CREAT, 0600);
	struct list *list;

	if (fd < 0 || ftruncate(fd, sizeof(*list)) < 0)
		return 1;
	list = mmap(NULL, sizeof(*list), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (list == MAP_FAILED)
		return 1;
	for (long i = 1; i <= 3; i++)
		list_append(list, i);
	list_sync(list);
	printf("the list has %ld elements\n", list->length);
	list_clear(list);
	return 0;
}
