/* SPDX-License-Identifier: BSD-3-Clause */
/* A table that grows: who inserts meanwhile finds the new one before it is certain to stay. */
#include "races.h"

enum { BUCKETS = 64 };

struct table {
	_Alignas(64) long bucket[BUCKETS];
};
struct root {
	_Alignas(64) struct table *current;
	struct table table[2];
};
static struct root *root;
static pthread_rwlock_t resizing = PTHREAD_RWLOCK_INITIALIZER;

static void *resize(void *unused)
{
	for (long i = 1; i < ROUNDS; i++) {
		pthread_rwlock_wrlock(&resizing);
		root->current = &root->table[i & 1]; /* store: pointer */
		WHEN_FIXED(PERSIST(&root->current));
		pthread_rwlock_unlock(&resizing);
		WHEN_BUGGY(PERSIST(&root->current));
	}
	return unused;
}

static void *insert(void *unused)
{
	for (long i = 0; i < ROUNDS; i++) {
		struct table *table;

		WHEN_FIXED(pthread_rwlock_rdlock(&resizing));
		table = root->current; /* load: pointer */
		table->bucket[i % BUCKETS] = i;
		PERSIST(&table->bucket[i % BUCKETS]);
		WHEN_FIXED(pthread_rwlock_unlock(&resizing));
	}
	return unused;
}

int main(int argc, char **argv)
{
	root = pm_map(argv);
	root->current = &root->table[0];
	PERSIST(&root->current);
	run_both(resize, insert);
	return argc != 2;
}
