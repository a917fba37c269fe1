/* SPDX-License-Identifier: BSD-3-Clause */
/* C11 threads: creating, joining and locking complete flushes. */
/* threads: yes */
#include "../pm.h"

#include <threads.h>

static mtx_t mutex;

static int worker(void *argument)
{
	long *p = argument;

	mtx_lock(&mutex);
	p[0] = 1;
	CLWB(p);
	mtx_unlock(&mutex);
	p[8] = 1; /* expect: missing-fence */
	CLWB(p + 8);
	WHEN_FIXED(SFENCE());
	return 0;
}

int main(int argc, char **argv)
{
	long *p = pm_map(argv);
	thrd_t thread;

	(void)argc;
	mtx_init(&mutex, mtx_plain);
	p[16] = 1;
	CLWB(p + 16);
	thrd_create(&thread, worker, p);
	p[24] = 1;
	CLWB(p + 24);
	thrd_join(thread, NULL);
	return 0;
}
