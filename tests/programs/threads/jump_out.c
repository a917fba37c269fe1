/* SPDX-License-Identifier: BSD-3-Clause */
/* A handler that jumps out of a faulting access leaves nothing locked. */
/* threads: yes */
/* limit: a signal handler interrupted the analysis */
#include "../pm.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>

static sigjmp_buf back;
static char *p;

static void handler(int number)
{
	(void)number;
	siglongjmp(back, 1);
}

static void *worker(void *unused)
{
	p[1] = 3;
	PERSIST(p);
	return unused;
}

int main(int argc, char **argv)
{
	char *bad = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t thread;

	(void)argc;
	p = pm_map(argv);
	signal(SIGSEGV, handler);
	if (!sigsetjmp(back, 1))
		memcpy(p, bad, 32);
	if (!sigsetjmp(back, 1))
		memcpy(p, bad, 3200);
	mprotect(p, 4096, PROT_READ);
	if (!sigsetjmp(back, 1))
		p[0] = 1;
	if (!sigsetjmp(back, 1))
		__atomic_fetch_add((long *)p, 1, __ATOMIC_SEQ_CST);
	mprotect(p, 4096, PROT_READ | PROT_WRITE);
	pthread_create(&thread, NULL, worker, NULL);
	pthread_join(thread, NULL);
	p[8192] = 1; /* expect: missing-flush */
	WHEN_FIXED(CLFLUSH(p + 8192));
	return 0;
}
