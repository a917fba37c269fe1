/* command: check */
/* flags: -lpmemobj */
/* no-pm: libpmemobj maps the pool */
/* model-limit: a prebuilt library writes to PM */
/* model-limit: recoveries depend on more than what they read */
/*
 * An aborted transaction has restored what it logged, also the bytes that did not change; and what
 * was flushed before the library makes something durable is durable first.
 */
#include "open_pool.h"

struct root {
	uint64_t changed;
	uint64_t rest[15];
	PMEMoid object;
};

struct object {
	uint64_t id;
};

int main(int argc, char **argv)
{
	PMEMobjpool *pool = open_pool(argv[1]);
	struct root *root = pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
	struct pobj_action action;
	struct object *object;
	PMEMoid oid;

	(void)argc;
	if (root->changed == 1234)
		return 1;
	if (root->object.off) {
		object = pmemobj_direct(root->object);
		if (object->id != 7) /* expect: cross-failure-race */
			abort(); /* expect: crash-symptom */
	} else {
		TX_BEGIN(pool)
		{
			pmemobj_tx_add_range_direct(&root->changed, 8);
			root->changed = 9;
			pmemobj_tx_abort(1);
		}
		TX_END
		oid = pmemobj_reserve(pool, &action, sizeof(struct object), 1);
		object = pmemobj_direct(oid);
		object->id = 7;
		WHEN_FIXED(pmemobj_flush(pool, object, sizeof(*object));)
		TX_BEGIN(pool)
		{
			pmemobj_tx_add_range_direct(&root->object, sizeof(root->object));
			pmemobj_tx_publish(&action, 1);
			root->object = oid;
		}
		TX_END
		WHEN_BUGGY(pmemobj_persist(pool, object, sizeof(*object));)
	}
	pmemobj_close(pool);
	return 0;
}
