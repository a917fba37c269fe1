/* SPDX-License-Identifier: BSD-3-Clause */
/* For programs that must do the same with threads and with fibers. */
#ifndef THREADS_H
#define THREADS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Something to crash, or nobody would look at more than one schedule. */
__attribute__((constructor)) static inline void map_pool(void)
{
	int fd = open("pool", O_RDWR | O_CREAT, 0666);
	long *pm = (long *)MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, 4096) == 0)
		pm = (long *)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (pm == MAP_FAILED)
		abort();
	close(fd);
	__atomic_store_n(pm, *pm + 1, __ATOMIC_RELEASE);
	__builtin_ia32_clflush(pm);
}

static inline void say(const char *format, ...)
{
	char text[256];
	va_list list;
	int length;

	va_start(list, format);
	length = vsnprintf(text, sizeof(text) - 1, format, list);
	va_end(list);
	text[length++] = '\n';
	if (write(1, text, length) != length)
		abort();
}

/* In a thread of its own, to its end. */
static inline void *run(void *(*function)(void *))
{
	pthread_t thread;
	void *result;

	if (pthread_create(&thread, NULL, function, NULL) || pthread_join(thread, &result))
		abort();
	return result;
}

#endif
