/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs random code, of which flow.py has written the function, and says what it has done; a timer
 * looks where it is stopped. The same is appended to a file, because not all that is printed is
 * shown. flow POOL STEPS RESULTS.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <ucontext.h>

#include "pm.h"

/* Stores to both areas; returns how many were to PM. */
extern uint64_t flow(char *dram, char *pm, uint64_t steps, uint64_t seed);
extern char flow_end[];

enum { AREA = 4096, ROUNDS = 40 };
static volatile long elsewhere, changed;
static char dram[AREA], *pm;

/* Of the registers, flow leaves three as they are. */
static void look(int number, siginfo_t *info, void *context)
{
	const greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
	uintptr_t pc = g[REG_RIP];
	static greg_t stack;
	Dl_info object;

	(void)number;
	(void)info;
	if (pc < (uintptr_t)flow || pc >= (uintptr_t)flow_end) {
		elsewhere += !dladdr((void *)pc, &object);
		return;
	}
	if (!stack)
		stack = g[REG_RSP];
	changed += g[REG_RDI] != (greg_t)dram || g[REG_RSI] != (greg_t)pm || g[REG_RSP] != stack;
}

static uint64_t sum_of(const char *area)
{
	uint64_t sum = 0;

	for (int i = 0; i < AREA; i++)
		sum = sum * 31 + (unsigned char)area[i];
	return sum;
}

static void report(FILE *file, uint64_t stores)
{
	fprintf(file, "%lu stores to PM, %016lx, %016lx, stopped in %s, registers %s\n",
		(unsigned long)stores, (unsigned long)sum_of(dram), (unsigned long)sum_of(pm),
		elsewhere ? "unknown code" : "the program", changed ? "changed" : "as they were");
}

static void *do_nothing(void *unused)
{
	return unused;
}

int main(int argc, char **argv)
{
	struct itimerval often = { { 0, 500 }, { 0, 500 } }, never = { { 0, 0 }, { 0, 0 } };
	struct sigaction action = { .sa_sigaction = look, .sa_flags = SA_SIGINFO | SA_RESTART };
	uint64_t stores = 0;
	pthread_t thread; /* with which all that there is about threads begins */
	FILE *results;

	if (argc != 4 || pthread_create(&thread, NULL, do_nothing, NULL) ||
	    pthread_join(thread, NULL))
		return 2;
	pm = (char *)pm_map(argv);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < ROUNDS; i++)
		stores += flow(dram, pm, strtoull(argv[2], NULL, 10), i);
	setitimer(ITIMER_REAL, &never, NULL);
	report(stdout, stores);
	results = fopen(argv[3], "a");
	if (!results)
		return 2;
	report(results, stores);
	return fclose(results) ? 2 : 0;
}
