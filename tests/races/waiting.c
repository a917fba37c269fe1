/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that wait for each other in ways of their own: for a word in the stack or among the
 * thread-local variables, through the kernel, for an initialisation; and two that share a line.
 */
#include <stdatomic.h>
#include <sys/eventfd.h>

#include "races.h"

enum { SOME = 300 };

struct root {
	_Alignas(64) long stack;
	_Alignas(64) long local;
	_Alignas(64) long piped;
	_Alignas(64) long event;
	_Alignas(64) long once;
	_Alignas(64) long left;
	long right;
};
static struct root *pm;

static _Atomic(_Atomic int *) waiting, mailbox;
static __thread _Atomic int letter;
static int ends[2], event, back;
static pthread_once_t control = PTHREAD_ONCE_INIT;
static pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER, right = PTHREAD_MUTEX_INITIALIZER;

static void initialise(void)
{
	pm->once = 1; /* store: once */
	WHEN_FIXED(PERSIST(&pm->once));
}

static void *give(void *unused)
{
	uint64_t one;
	char byte = 0;

	pthread_once(&control, initialise);
	for (long i = 0; i < SOME; i++) {
		_Atomic int *there;

		while (!(there = atomic_load(&waiting)))
			;
		pm->stack = i; /* store: stack */
		WHEN_FIXED(PERSIST(&pm->stack));
		atomic_store(&waiting, NULL);
		atomic_store_explicit(there, 1, memory_order_release);
		WHEN_BUGGY(PERSIST(&pm->stack));
		while (!(there = atomic_load(&mailbox)))
			;
		pm->local = i; /* store: local */
		WHEN_FIXED(PERSIST(&pm->local));
		atomic_store(&mailbox, NULL);
		atomic_store_explicit(there, 1, memory_order_release);
		WHEN_BUGGY(PERSIST(&pm->local));
		pm->piped = i; /* store: piped */
		WHEN_FIXED(PERSIST(&pm->piped));
		if (write(ends[1], &byte, 1) != 1)
			abort();
		WHEN_BUGGY(PERSIST(&pm->piped));
		pm->event = i; /* store: event */
		WHEN_FIXED(PERSIST(&pm->event));
		eventfd_write(event, 1);
		WHEN_BUGGY(PERSIST(&pm->event));
		eventfd_read(back, &one);
		pthread_mutex_lock(&left);
		pm->left = i; /* store: left */
		WHEN_FIXED(PERSIST(&pm->left));
		pthread_mutex_unlock(&left);
		WHEN_BUGGY(PERSIST(&pm->left));
		pthread_mutex_lock(&right);
		sink = pm->right;
		pthread_mutex_unlock(&right);
	}
	return unused;
}

static void *take(void *unused)
{
	char byte;

	pthread_once(&control, initialise);
	sink = pm->once; /* perhaps: once */
	for (long i = 0; i < SOME; i++) {
		_Atomic int here = 0;
		uint64_t one;

		atomic_store(&waiting, &here);
		while (!atomic_load_explicit(&here, memory_order_acquire))
			;
		sink = pm->stack; /* load: stack */
		letter = 0;
		atomic_store(&mailbox, &letter);
		while (!atomic_load_explicit(&letter, memory_order_acquire))
			;
		sink = pm->local; /* load: local */
		if (read(ends[0], &byte, 1) != 1)
			abort();
		sink = pm->piped; /* load: piped */
		eventfd_read(event, &one);
		sink = pm->event; /* load: event */
		eventfd_write(back, 1);
		pthread_mutex_lock(&right);
		pm->right = i;
		PERSIST(&pm->right); /* the whole line */
		pthread_mutex_unlock(&right);
		pthread_mutex_lock(&left);
		sink = pm->left; /* load: left */
		pthread_mutex_unlock(&left);
	}
	return unused;
}

int main(int argc, char **argv)
{
	pm = pm_map(argv);
	event = eventfd(0, 0);
	back = eventfd(0, 0);
	if (pipe(ends) < 0)
		return 1;
	run_both(give, take);
	return argc != 2;
}
