/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lot of objects are made, each persisted before anybody can see it. Of the first one, two fields
 * are not, and it is read when all the others have been made.
 */
#include <stdbool.h>

#include "races.h"

enum { OBJECTS = 8000 };

struct object {
	_Alignas(64) volatile long number;
	volatile long of, many;
};
static struct object *object;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static __attribute__((noinline)) void make(struct object *o, long number)
{
	o->number = number;
	o->of = OBJECTS;
	o->many = -number;
	PERSIST((void *)o);
}

static void *maker(void *unused)
{
	pthread_mutex_lock(&mutex);
	object->number = 1; /* store: number */
	object->of = 1;     /* store: of */
	object->many = 1;   /* store: many */
	WHEN_FIXED(PERSIST((void *)object));
	pthread_mutex_unlock(&mutex);
	for (long i = 1; i < OBJECTS; i++) {
		make(&object[i], i);
		pthread_mutex_lock(&mutex);
		sink = i;
		pthread_mutex_unlock(&mutex);
	}
	return unused;
}

static void *reader(void *unused)
{
	bool last = false;

	while (!last) {
		pthread_mutex_lock(&mutex);
		last = sink == OBJECTS - 1;
		if (last) {
			sink += object->number; /* load: number */
			sink += object->of;     /* load: of */
			sink += object->many;   /* load: many */
		}
		pthread_mutex_unlock(&mutex);
	}
	return unused;
}

int main(int argc, char **argv)
{
	object = pm_map(argv);
	run_both(maker, reader);
	return argc != 2;
}
