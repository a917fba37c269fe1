/* SPDX-License-Identifier: BSD-3-Clause */
/* fork in a program with threads: the child has only the one that called it. */
#include "threads.h"

#include <sys/wait.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int go_on = 1;
static int counted;

static void *count(void *argument)
{
	while (go_on) {
		pthread_mutex_lock(&lock);
		counted++;
		pthread_mutex_unlock(&lock);
		sched_yield();
	}
	return argument;
}

static void *in_child(void *argument)
{
	say("a thread of the child: %ld", (long)argument);
	return (void *)11;
}

static void *fork_here(void *argument)
{
	pid_t child;
	int status;

	pthread_mutex_lock(&lock);
	child = fork();
	if (child == 0) {
		int before = counted;
		pthread_t thread;
		void *result;

		pthread_mutex_unlock(&lock);
		usleep(1000);
		sched_yield();
		say("the others stand still: %d", before == counted);
		pthread_create(&thread, NULL, in_child, (void *)3);
		pthread_join(thread, &result);
		_exit((int)(long)result);
	}
	pthread_mutex_unlock(&lock);
	waitpid(child, &status, 0);
	say("child ended with %d", WEXITSTATUS(status));
	return argument;
}

int main(void)
{
	pthread_t thread[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, count, NULL);
	for (int before = 0; !before; usleep(1000)) {
		pthread_mutex_lock(&lock);
		before = counted;
		pthread_mutex_unlock(&lock);
	}
	run(fork_here);
	go_on = 0;
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	say("counted: %d", counted > 0);
	return 0;
}
