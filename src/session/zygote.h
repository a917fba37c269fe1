/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the command and a zygote say to each other, over a socket. A zygote is the target, loaded
 * and linked, and stopped before its first own instruction; every execution is a fork of it.
 */
#ifndef SESSION_ZYGOTE_H
#define SESSION_ZYGOTE_H

#include <stdint.h>

/*
 * The end of the zygote's GLIBC_TUNABLES, which it takes away again before the program can see it:
 * huge pages for all of the heap but its beginning. Page faults are most of a recovery's time.
 */
#define ZYGOTE_TUNABLE "glibc.malloc.hugetlb=1"

enum zygote_word {
	ZYGOTE_READY,   /* from the zygote, once: is it built with perdure-cc? other: its process */
	ZYGOTE_FORK,    /* to it: start this execution */
	ZYGOTE_STARTED, /* from it: the process */
	ZYGOTE_ENDED,   /* its status, as from wait; other: 1 if it left processes behind */
	ZYGOTE_REAP,    /* to it: wait for these */
	ZYGOTE_REAPED,
};

struct zygote_message {
	uint32_t word;
	uint32_t execution;
	int32_t value, other;
};

#endif
