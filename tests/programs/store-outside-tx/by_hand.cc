/* SPDX-License-Identifier: BSD-3-Clause */
/* A transaction without a jump buffer, as the C++ bindings begin it. */
/* flags: -lpmemobj */
/* no-pm: yes */
#include "../pool.h"

#include <stdexcept>

struct transaction {
	explicit transaction(PMEMobjpool *pool)
	{
		if (pmemobj_tx_begin(pool, nullptr, TX_PARAM_NONE))
			throw std::runtime_error("begin");
	}
	~transaction()
	{
		if (pmemobj_tx_stage() == TX_STAGE_WORK)
			pmemobj_tx_abort(ECANCELED);
		pmemobj_tx_end();
	}
	void commit() { pmemobj_tx_commit(); }
};

int main(int argc, char **argv)
{
	PMEMobjpool *pool = pool_create(argv[1]);
	struct root *root = pool_root(pool);

	{
		transaction tx(pool);

		pmemobj_tx_add_range_direct(&root->count, sizeof(root->count));
		root->count = argc;
		tx.commit();
	}
	try {
		transaction tx(pool);

		pmemobj_tx_add_range_direct(&root->count, sizeof(root->count));
		root->count = argc;
		throw std::runtime_error("on the way");
	} catch (const std::runtime_error &) {
	}
	root->inline_node.key = argc;
	pmemobj_persist(pool, &root->inline_node.key, sizeof(uint64_t));
	{
		transaction tx(pool);

#ifdef FIXED
		pmemobj_tx_add_range_direct(&root->total, sizeof(root->total));
#endif
		root->total = argc; /* expect: store-outside-tx missing-flush */
		tx.commit();
	}
	pmemobj_close(pool);
	return 0;
}
