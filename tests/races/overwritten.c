/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One thread never persists what it stores; the other one stores there, too, and reads that back.
 * The bug: it has a look at what was there before.
 */
#include "races.h"

struct root {
	_Alignas(64) volatile long value;
};
static struct root *root;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *careless(void *unused)
{
	for (long i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&mutex);
		root->value = i; /* store: value */
		pthread_mutex_unlock(&mutex);
	}
	return unused;
}

static void *careful(void *unused)
{
	for (long i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&mutex);
		WHEN_BUGGY(sink += root->value); /* load: value */
		root->value = -i;
		sink += root->value;
		PERSIST(root);
		pthread_mutex_unlock(&mutex);
	}
	return unused;
}

int main(int argc, char **argv)
{
	root = pm_map(argv);
	run_both(careless, careful);
	return argc != 2;
}
