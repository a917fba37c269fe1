/* SPDX-License-Identifier: BSD-3-Clause */
/* A collector notes under its lock what the oldest version is, and nobody ever persists that. */
#include "races.h"

struct root {
	_Alignas(64) long oldest;
	long minimum;
};
static struct root *root;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *collect(void *unused)
{
	for (long i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&lock);
		root->oldest = i;      /* store: oldest */
		root->minimum = i + 1; /* store: minimum */
		WHEN_FIXED(PERSIST(root));
		pthread_mutex_unlock(&lock);
	}
	return unused;
}

static void *use(void *unused)
{
	for (long i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&lock);
		sink = root->oldest;  /* load: oldest */
		sink = root->minimum; /* load: minimum */
		pthread_mutex_unlock(&lock);
	}
	return unused;
}

int main(int argc, char **argv)
{
	root = pm_map(argv);
	run_both(collect, use);
	return argc != 2;
}
