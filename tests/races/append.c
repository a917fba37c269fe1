/* SPDX-License-Identifier: BSD-3-Clause */
/* A value is changed in place and not persisted; who appends to it persists a copy of that. */
#include "races.h"

enum { LENGTH = 16 };

struct root {
	_Alignas(64) char value[LENGTH];
	_Alignas(64) uint8_t flags;
	_Alignas(64) char longer[2 * LENGTH];
};
static struct root *root;
static pthread_mutex_t item = PTHREAD_MUTEX_INITIALIZER;

static void *increment(void *unused)
{
	char text[LENGTH];

	for (long i = 0; i < ROUNDS; i++) {
		snprintf(text, sizeof(text), "%013ld", i);
		pthread_mutex_lock(&item);
		memcpy(root->value, text, LENGTH); /* store: value */
		root->flags |= 4;                  /* store: flags */
		WHEN_FIXED(CLWB(&root->flags));
		WHEN_FIXED(PERSIST(root->value));
		pthread_mutex_unlock(&item);
	}
	return unused;
}

static void *append(void *unused)
{
	for (long i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&item);
		memcpy(root->longer, root->value, LENGTH); /* load: value */
		sink = root->flags;                        /* load: flags */
		PERSIST(root->longer);
		pthread_mutex_unlock(&item);
	}
	return unused;
}

int main(int argc, char **argv)
{
	root = pm_map(argv);
	run_both(increment, append);
	return argc != 2;
}
