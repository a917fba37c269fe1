/* SPDX-License-Identifier: BSD-3-Clause */
/* Figure 1: a store under another lock, and one that is persistent after its lock was released. */
#include "races.h"

struct root {
	_Alignas(64) long x;
};
static struct root *root;
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) static void persist_x(void)
{
	PERSIST(&root->x);
}

static void *writer(void *unused)
{
	for (long i = 0; i < ROUNDS; i++) {
		if (i % 8 == 7) {
			pthread_mutex_lock(&b);
			root->x = i; /* store: rare */
			persist_x();
			pthread_mutex_unlock(&b);
		} else {
			pthread_mutex_lock(&a);
			root->x = -i; /* store: common */
			WHEN_FIXED(persist_x());
			pthread_mutex_unlock(&a);
			WHEN_BUGGY(persist_x());
		}
	}
	return unused;
}

static void *reader(void *unused)
{
	for (long i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&a);
		WHEN_FIXED(pthread_mutex_lock(&b));
		sink = root->x; /* load: rare common */
		WHEN_FIXED(pthread_mutex_unlock(&b));
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
