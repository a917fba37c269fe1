/* SPDX-License-Identifier: BSD-3-Clause */
/* Actions: what is reserved is no object until it is published, and what is cancelled never is. */
/* flags: -lpmemobj */
/* no-pm: yes */
/* threads: yes */
#include "../pool.h"

#include <pthread.h>

static PMEMobjpool *pool;
static struct pobj_action other;

static void *publish_other(void *unused)
{
	pmemobj_publish(pool, &other, 1);
	return unused;
}

int main(int argc, char **argv)
{
	struct pobj_action action[2], cancelled, deferred, unused_action;
	struct node *first, *second, *third, *gone;
	struct root *root;
	pthread_t thread;
	PMEMoid oid;

	pool = pool_create(argv[1]);
	root = pool_root(pool);
	first = pmemobj_direct(pmemobj_reserve(pool, &action[0], sizeof(*first), 1));
	second = pmemobj_direct(oid = pmemobj_reserve(pool, &action[1], sizeof(*second), 1));
	first->key = 1;
	pmemobj_persist(pool, &first->key, 8);
	pmemobj_publish(pool, &action[0], 1);
	TX_BEGIN(pool) {
		second->key = 2; /* still reserved */
		pmemobj_persist(pool, &second->key, 8);
		WHEN_FIXED(TX_ADD_DIRECT(&first->key));
		first->key = 3; /* expect: store-outside-tx */
	} TX_END
	TX_BEGIN(pool) {
		pmemobj_tx_publish(&action[1], 1);
		TX_ADD_DIRECT(&root->first);
		root->first = oid;
	} TX_END
	gone = pmemobj_direct(pmemobj_reserve(pool, &cancelled, sizeof(*gone), 1));
	gone->key = 4;
	pmemobj_cancel(pool, &cancelled, 1);
	first->value = 5; /* freed below */
	pmemobj_defer_free(pool, pmemobj_oid(first), &deferred);
#ifdef FIXED
	pmemobj_publish(pool, &deferred, 1);
#else
	pmemobj_cancel(pool, &deferred, 1);
	pmemobj_persist(pool, &first->value, 8);
#endif
	third = pmemobj_direct(pmemobj_reserve(pool, &other, sizeof(*third), 1));
	third->key = argc;
	pmemobj_persist(pool, &third->key, 8);
	pthread_create(&thread, NULL, publish_other, NULL);
	pthread_join(thread, NULL);
	TX_BEGIN(pool) {
		WHEN_FIXED(TX_ADD_DIRECT(&third->value));
		third->value = argc; /* expect: store-outside-tx missing-flush */
	} TX_END
	gone = pmemobj_direct(pmemobj_reserve(pool, &unused_action, sizeof(*gone), 1));
	gone->key = 6; /* never published */
	pmemobj_close(pool);
	return 0;
}
