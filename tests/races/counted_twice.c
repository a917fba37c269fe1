/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A counter that each thread changes twice, with nobody in between, because there is a lock around
 * it: it is not a lock itself.
 */
#include <stdatomic.h>

#include "races.h"

struct root {
	_Alignas(64) atomic_long count;
};
static struct root *root;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *unused)
{
	for (long i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&lock);
		atomic_fetch_add(&root->count, 1); /* store: first */  /* load: second */
		atomic_fetch_add(&root->count, 1); /* store: second */ /* load: second */
		WHEN_FIXED(PERSIST(root));
		pthread_mutex_unlock(&lock);
		PERSIST(root);
	}
	return unused;
}

int main(int argc, char **argv)
{
	root = pm_map(argv);
	run_both(work, work);
	return argc != 2;
}
