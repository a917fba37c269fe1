/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ledger with an undo log: before an account changes, its old balance is logged, and put back if
 * the program finds a valid log when it starts. There is one mistake in it, which `perdure check`
 * finds by crashing the program wherever that makes a difference:
 *
 *	perdure-cc -O2 -mclwb ledger.c -o ledger
 *	perdure check --pm '*.pm' ./ledger ledger.pm
 */
#include <assert.h>
#include <fcntl.h>
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ACCOUNTS = 4, TOTAL = 1000 };

struct ledger {
	_Alignas(64) _Atomic uint64_t log_valid; /* number of entries */
	_Alignas(64) struct {
		uint64_t account, balance;
	} log[2];
	_Alignas(64) uint64_t balance[ACCOUNTS];
	_Alignas(64) _Atomic uint64_t ready;
};

static void persist(const void *p)
{
	_mm_clwb((void *)p);
	_mm_sfence();
}

static void recover(struct ledger *ledger)
{
	if (!ledger->log_valid)
		return;
	for (uint64_t i = 0; i < ledger->log_valid; i++)
		ledger->balance[ledger->log[i].account] = ledger->log[i].balance;
	persist(ledger->balance);
	ledger->log_valid = 0;
	persist((void *)&ledger->log_valid);
}

static void transfer(struct ledger *ledger, uint64_t from, uint64_t to, uint64_t amount)
{
	ledger->log[0].account = from;
	ledger->log[0].balance = ledger->balance[from];
	ledger->log[1].account = to;
	ledger->log[1].balance = ledger->balance[to];
	_mm_clwb(ledger->log); /* bug: no fence before the log becomes valid */
	__atomic_store_n((uint64_t *)&ledger->log_valid, 2, __ATOMIC_RELEASE);
	persist((void *)&ledger->log_valid);
	ledger->balance[from] -= amount;
	ledger->balance[to] += amount;
	persist(ledger->balance);
	ledger->log_valid = 0;
	persist((void *)&ledger->log_valid);
}

int main(int argc, char **argv)
{
	int fd = argc == 2 ? open(argv[1], O_RDWR | O_CREAT, 0666) : -1;
	struct ledger *ledger;
	uint64_t total = 0;

	if (fd < 0 || ftruncate(fd, sizeof(*ledger)) < 0)
		return 2;
	ledger = mmap(NULL, sizeof(*ledger), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ledger == MAP_FAILED)
		return 2;
	if (!ledger->ready) {
		for (int i = 0; i < ACCOUNTS; i++)
			ledger->balance[i] = TOTAL / ACCOUNTS;
		persist(ledger->balance);
		ledger->ready = 1;
		persist((void *)&ledger->ready);
	}
	recover(ledger);
	for (int i = 0; i < ACCOUNTS; i++)
		total += ledger->balance[i];
	assert(total == TOTAL);
	transfer(ledger, 0, 1, 100);
	transfer(ledger, 1, 2, 50);
	printf("the ledger holds %d\n", TOTAL);
	return 0;
}
