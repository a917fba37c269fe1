/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For programs with two threads that do something again and again. "store: NAME" marks a line that
 * stores, "load: NAME …" one that races with these ("perhaps: NAME": if it so happens); with
 * -DFIXED there is no race.
 */
#ifndef TESTS_RACES_H
#define TESTS_RACES_H

#include <pthread.h>

#include "../programs/pm.h"

#ifndef ROUNDS
#define ROUNDS 20000
#endif

static volatile long sink; /* what was read is used */

static inline void run_both(void *(*one)(void *), void *(*other)(void *))
{
	pthread_t thread[2];

	pthread_create(&thread[0], NULL, one, NULL);
	pthread_create(&thread[1], NULL, other, NULL);
	pthread_join(thread[0], NULL);
	pthread_join(thread[1], NULL);
}

#endif
