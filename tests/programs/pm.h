/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For the test programs: a mapped PM file and the instructions, as macros so that the line of a
 * finding is the line of the program. A program is built twice: as it is, with the bug, and with
 * -DFIXED, where nothing may be reported. "expect: KIND" marks the line where a finding belongs.
 */
#ifndef TESTS_PM_H
#define TESTS_PM_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CLWB(p) __asm__ volatile(".byte 0x66; xsaveopt %0" : "+m"(*(volatile char *)(p)))
#define CLFLUSHOPT(p) __asm__ volatile(".byte 0x66; clflush %0" : "+m"(*(volatile char *)(p)))
#define CLFLUSH(p) __asm__ volatile("clflush %0" : "+m"(*(volatile char *)(p)))
#define SFENCE() __asm__ volatile("sfence" ::: "memory")
#define MFENCE() __asm__ volatile("mfence" ::: "memory")
#define PERSIST(p) \
	do { \
		CLWB(p); \
		SFENCE(); \
	} while (0)

#ifdef FIXED
#define WHEN_FIXED(...) __VA_ARGS__
#define WHEN_BUGGY(...)
#else
#define WHEN_FIXED(...)
#define WHEN_BUGGY(...) __VA_ARGS__
#endif

enum { PM_SIZE = 1 << 20 };

static inline void *pm_map(char **argv)
{
	int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
	void *p;

	if (fd < 0 || ftruncate(fd, PM_SIZE) < 0)
		exit(9);
	p = mmap(NULL, PM_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		exit(9);
	close(fd);
	return p;
}

#endif
