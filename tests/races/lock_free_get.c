/* SPDX-License-Identifier: BSD-3-Clause */
/* A reader without a lock returns what was inserted, or misses what was deleted, too early. */
#include "races.h"

enum { SLOTS = 4 };

struct slot {
	_Alignas(64) volatile long key;
	long value;
};
static struct slot *slot;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void insert(struct slot *s, long key)
{
	s->value = key * 2; /* store: value */
	PERSIST(&s->value);
	s->key = key; /* store: insert */
	PERSIST(&s->key);
}

static void erase(struct slot *s)
{
	s->key = 0; /* store: delete */
	PERSIST(&s->key);
}

static void *writer(void *unused)
{
	for (long i = 1; i < ROUNDS; i++) {
		pthread_mutex_lock(&lock);
		if (i & 1)
			insert(&slot[i / 2 % SLOTS], i);
		else
			erase(&slot[(i - 1) / 2 % SLOTS]);
		pthread_mutex_unlock(&lock);
	}
	return unused;
}

static void *reader(void *unused)
{
	for (long i = 0; i < ROUNDS; i++) {
		struct slot *s = &slot[i % SLOTS];

		WHEN_FIXED(pthread_mutex_lock(&lock));
		if (s->key)              /* load: insert delete */
			sink = s->value; /* perhaps: value */
		WHEN_FIXED(pthread_mutex_unlock(&lock));
	}
	return unused;
}

int main(int argc, char **argv)
{
	slot = pm_map(argv);
	run_both(writer, reader);
	return argc != 2;
}
