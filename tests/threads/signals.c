/* SPDX-License-Identifier: BSD-3-Clause */
/* Masks of threads, a thread that waits for signals, and one that handles them. */
#include "threads.h"

static volatile int handled, asked;

static void on_signal(int number)
{
	handled += number == SIGUSR2;
}

static void *wait_for_signals(void *argument)
{
	sigset_t set;
	int signal;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	for (int i = 0; i < 2; i++) {
		sigwait(&set, &signal);
		say("waited for %d", signal == SIGUSR1);
		asked++;
	}
	return argument;
}

static void *block_all(void *argument)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	while (handled < 2)
		usleep(1000);
	return argument;
}

static void *look_at_mask(void *argument)
{
	sigset_t set;

	pthread_sigmask(SIG_BLOCK, NULL, &set);
	say("inherited %d, not of others %d", sigismember(&set, SIGUSR1),
	    !sigismember(&set, SIGTERM));
	return argument;
}

int main(void)
{
	pthread_t thread[2];
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGUSR2, on_signal);
	pthread_create(&thread[0], NULL, wait_for_signals, NULL);
	pthread_create(&thread[1], NULL, block_all, NULL);
	run(look_at_mask);
	for (int i = 1; i <= 2; i++) {
		kill(getpid(), SIGUSR1);
		while (asked < i)
			usleep(1000);
		kill(getpid(), SIGUSR2);
		while (handled < i)
			usleep(1000);
	}
	pthread_join(thread[0], NULL);
	pthread_join(thread[1], NULL);
	say("handled %d", handled);
	return 0;
}
