/* SPDX-License-Identifier: BSD-3-Clause */
/* Transactions of threads do not know each other. */
/* flags: -lpmemobj */
/* no-pm: yes */
/* threads: yes */
#include "../pool.h"

#include <pthread.h>

static PMEMobjpool *pool;
static struct root *root;
static pthread_barrier_t barrier;

static void *outside(void *unused)
{
	pthread_barrier_wait(&barrier); /* the other thread is in its transaction */
	root->total = 1;
	pmemobj_persist(pool, &root->total, sizeof(root->total));
	TX_BEGIN(pool) {
		WHEN_FIXED(TX_ADD_DIRECT(&root->count));
		root->count = 1; /* expect: store-outside-tx missing-flush */
	} TX_END
	pthread_barrier_wait(&barrier);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	pool = pool_create(argv[1]);
	root = pool_root(pool);
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&thread, NULL, outside, NULL);
	TX_BEGIN(pool) {
		TX_ADD_DIRECT(&root->inline_node);
		root->inline_node.key = argc;
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
		root->inline_node.value = argc;
	} TX_END
	pthread_join(thread, NULL);
	pmemobj_close(pool);
	return 0;
}
