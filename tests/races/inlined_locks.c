/* SPDX-License-Identifier: BSD-3-Clause */
/* Locks that no function stands for: in ordinary memory and in PM, freed by a plain store or not.
 */
#include "races.h"

struct root {
	_Alignas(64) long data[4][8]; /* a line for each lock */
	_Alignas(64) uint8_t byte;
	_Alignas(64) int readers;
};
static struct root *root;
static int word;
static struct {
	unsigned next, owner;
} ticket;

#define ATOMIC(name, ...) __atomic_##name(__VA_ARGS__, __ATOMIC_SEQ_CST)

static inline void spin_lock(int *lock)
{
	while (ATOMIC(exchange_n, lock, 1))
		__builtin_ia32_pause();
}

static inline void spin_unlock(int *lock)
{
	__atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

static inline void byte_lock(uint8_t *lock)
{
	uint8_t free = 0;

	while (!__atomic_compare_exchange_n(lock, &free, 1, 0, __ATOMIC_ACQUIRE,
					    __ATOMIC_RELAXED)) {
		free = 0;
		__builtin_ia32_pause();
	}
}

static inline void ticket_lock(void)
{
	unsigned own = ATOMIC(fetch_add, &ticket.next, 1);

	while (__atomic_load_n(&ticket.owner, __ATOMIC_ACQUIRE) != own)
		__builtin_ia32_pause();
}

static inline void ticket_unlock(void)
{
	__atomic_store_n(&ticket.owner, ticket.owner + 1, __ATOMIC_RELEASE);
}

static inline void count_lock(int *count)
{
	while (ATOMIC(fetch_add, count, 1) != 0) {
		ATOMIC(fetch_sub, count, 1);
		__builtin_ia32_pause();
	}
}

static void *writer(void *unused)
{
	for (long i = 0; i < ROUNDS; i++) {
		spin_lock(&word);
		root->data[0][0] = i; /* store: spin */
		WHEN_FIXED(PERSIST(&root->data[0]));
		spin_unlock(&word);
		WHEN_BUGGY(PERSIST(&root->data[0]));

		byte_lock(&root->byte);
		root->data[1][0] = i; /* store: byte */
		WHEN_FIXED(PERSIST(&root->data[1]));
		__atomic_store_n(&root->byte, 0, __ATOMIC_RELEASE);
		WHEN_BUGGY(PERSIST(&root->data[1]));

		ticket_lock();
		root->data[2][0] = i; /* store: ticket */
		WHEN_FIXED(PERSIST(&root->data[2]));
		ticket_unlock();
		WHEN_BUGGY(PERSIST(&root->data[2]));

		count_lock(&root->readers);
		root->data[3][0] = i; /* store: count */
		WHEN_FIXED(PERSIST(&root->data[3]));
		ATOMIC(fetch_sub, &root->readers, 1);
		WHEN_BUGGY(PERSIST(&root->data[3]));
	}
	return unused;
}

static void *reader(void *unused)
{
	for (long i = 0; i < ROUNDS; i++) {
		spin_lock(&word);
		sink = root->data[0][0]; /* load: spin */
		spin_unlock(&word);
		byte_lock(&root->byte);
		sink = root->data[1][0]; /* load: byte */
		__atomic_store_n(&root->byte, 0, __ATOMIC_RELEASE);
		ticket_lock();
		sink = root->data[2][0]; /* load: ticket */
		ticket_unlock();
		count_lock(&root->readers);
		sink = root->data[3][0]; /* load: count */
		ATOMIC(fetch_sub, &root->readers, 1);
	}
	return unused;
}

int main(int argc, char **argv)
{
	root = pm_map(argv);
	run_both(writer, reader);
	return argc != 2;
}
