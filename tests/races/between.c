/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A store that comes after the load, and is persistent before the reader releases anything: the
 * threads could as well have gone on the other way round. All that the reader does in between is
 * to load something else, again and again.
 */
#include "races.h"

enum { OTHERS = 512 };

struct root {
	_Alignas(64) long x;
	_Alignas(64) volatile long other[OTHERS];
};
static struct root *root;
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;

static void *writer(void *unused)
{
	for (long i = 0; i < ROUNDS; i++) {
		WHEN_FIXED(pthread_mutex_lock(&a));
		pthread_mutex_lock(&b);
		root->x = i; /* store: x */
		PERSIST(&root->x);
		pthread_mutex_unlock(&b);
		WHEN_FIXED(pthread_mutex_unlock(&a));
	}
	return unused;
}

static void *reader(void *unused)
{
	for (long i = 0; i < ROUNDS / 10; i++) {
		pthread_mutex_lock(&a);
		sink = root->x; /* load: x */
		for (int k = 0; k < OTHERS; k++)
			sink += root->other[k];
		pthread_mutex_unlock(&a);
	}
	return unused;
}

int main(int argc, char **argv)
{
	root = pm_map(argv);
	run_both(writer, reader);
	return argc != 2;
}
