/* SPDX-License-Identifier: BSD-3-Clause */
/* Money in a libpmemobj pool, moved in transactions. One account is not logged, another one twice.
 */
#include <libpmemobj.h>
#include <stdio.h>

struct account {
	long balance;
	char padding[56];
};

struct bank {
	struct account account[3];
};

static void transfer(PMEMobjpool *pool, struct account *from, struct account *to, long amount)
{
	TX_BEGIN(pool)
	{
		TX_ADD_DIRECT(&from->balance);
		from->balance -= amount;
		to->balance += amount; /* bug: not logged, so neither undone nor written back */
	}
	TX_END
}

static void deposit(PMEMobjpool *pool, struct account *account, long amount)
{
	TX_BEGIN(pool)
	{
		TX_ADD_DIRECT(account);
		TX_SET_DIRECT(account, balance, account->balance + amount); /* bug: logs it again */
	}
	TX_END
}

int main(int argc, char **argv)
{
	PMEMobjpool *pool =
		argc > 1 ? pmemobj_create(argv[1], "bank", PMEMOBJ_MIN_POOL, 0600) : NULL;
	struct bank *bank;

	if (!pool) {
		fprintf(stderr, "usage: accounts NEW-FILE\n");
		return 2;
	}
	bank = pmemobj_direct(pmemobj_root(pool, sizeof(*bank)));
	deposit(pool, &bank->account[0], 100);
	transfer(pool, &bank->account[0], &bank->account[1], 30);
	printf("%ld and %ld\n", bank->account[0].balance, bank->account[1].balance);
	pmemobj_close(pool);
	return 0;
}
