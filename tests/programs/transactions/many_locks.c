/* SPDX-License-Identifier: BSD-3-Clause */
/* A transaction that takes more locks than fit into registers, and a thread that ends in one. */
/* flags: -lpmemobj */
/* no-pm: yes */
/* threads: yes */
#include "../pool.h"

#include <pthread.h>

struct locks {
	PMEMmutex mutex[20];
	uint64_t value;
};

static PMEMobjpool *pool;
static struct locks *locks;

static void *leave_in_the_middle(void *unused)
{
	pmemobj_tx_begin(pool, NULL, TX_PARAM_NONE);
	pmemobj_tx_add_range_direct(&locks->value, 8);
	locks->value = 1; /* is rolled back */
	return unused;
}

int main(int argc, char **argv)
{
	PMEMmutex *m;
	pthread_t thread;
	int held = 0;

	(void)argc;
	pool = pool_create(argv[1]);
	locks = pmemobj_direct(pmemobj_root(pool, sizeof(*locks)));
	m = locks->mutex;
	TX_BEGIN_PARAM(pool, TX_PARAM_MUTEX, &m[0], TX_PARAM_MUTEX, &m[1], TX_PARAM_MUTEX, &m[2],
		       TX_PARAM_MUTEX, &m[3], TX_PARAM_MUTEX, &m[4], TX_PARAM_MUTEX, &m[5],
		       TX_PARAM_MUTEX, &m[6], TX_PARAM_MUTEX, &m[7], TX_PARAM_MUTEX, &m[8],
		       TX_PARAM_MUTEX, &m[9], TX_PARAM_MUTEX, &m[10], TX_PARAM_MUTEX, &m[11],
		       TX_PARAM_MUTEX, &m[12], TX_PARAM_MUTEX, &m[13], TX_PARAM_MUTEX, &m[14],
		       TX_PARAM_MUTEX, &m[15], TX_PARAM_MUTEX, &m[16], TX_PARAM_MUTEX, &m[17],
		       TX_PARAM_MUTEX, &m[18], TX_PARAM_MUTEX, &m[19], TX_PARAM_NONE) {
		for (int i = 0; i < 20; i++)
			held += pmemobj_mutex_trylock(pool, &m[i]) != 0;
		WHEN_FIXED(TX_ADD_DIRECT(&locks->value));
		locks->value = 2; /* expect: store-outside-tx */
	} TX_END
	pthread_create(&thread, NULL, leave_in_the_middle, NULL);
	pthread_join(thread, NULL);
	pmemobj_close(pool);
	return held == 20 ? 0 : 3;
}
