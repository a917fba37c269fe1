/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flags that locked instructions set, and plain stores clear again: they look like locks, but are
 * changed under one. As memcached marks what was asked for.
 */
#include "races.h"

enum { LINKED = 1, FETCHED = 8 };

struct root {
	_Alignas(64) unsigned char flags;
	_Alignas(64) long copy;
};
static struct root *root;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *fetcher(void *unused)
{
	for (long i = 0; i < ROUNDS; i++) {
		unsigned char flags;

		pthread_mutex_lock(&mutex);
		flags = root->flags | FETCHED;
		__atomic_exchange_n(&root->flags, flags, __ATOMIC_SEQ_CST); /* store: fetched */
		WHEN_FIXED(PERSIST(&root->flags));
		pthread_mutex_unlock(&mutex);
		WHEN_BUGGY(PERSIST(&root->flags));
		pthread_mutex_lock(&mutex);
		root->flags = LINKED;
		PERSIST(&root->flags);
		pthread_mutex_unlock(&mutex);
	}
	return unused;
}

static void *copier(void *unused)
{
	for (long i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&mutex);
		root->copy = root->flags; /* load: fetched */
		PERSIST(&root->copy);
		pthread_mutex_unlock(&mutex);
	}
	return unused;
}

int main(int argc, char **argv)
{
	root = pm_map(argv);
	root->flags = LINKED;
	PERSIST(&root->flags);
	run_both(fetcher, copier);
	return argc != 2;
}
