/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads on a hash table in PM whose buckets are cache lines, after the description of P-CLHT: a
 * lock and three pairs of key and value in each, written in the order value, key, flush, fence;
 * reads take no lock. index POOL [OPERATIONS [THREADS [PERCENT OF READS]]].
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { ENTRIES = 3, BUCKETS = 1 << 16, SPARE = 1 << 18 };

struct bucket {
	_Alignas(64) atomic_uint lock;
	_Atomic(struct bucket *) next;
	_Atomic uint64_t key[ENTRIES];
	_Atomic uint64_t value[ENTRIES];
};

struct table {
	struct bucket bucket[BUCKETS], spare[SPARE];
	_Alignas(64) atomic_uint used;
};

static struct table *table;
static long operations = 1000000, reads = 50;

static void persist(const void *p)
{
	__asm__ volatile(".byte 0x66; xsaveopt %0" : "+m"(*(volatile char *)p));
	__asm__ volatile("sfence" ::: "memory");
}

static struct bucket *bucket_of(uint64_t key)
{
	return &table->bucket[key * 0x9e3779b97f4a7c15ull >> 48 & (BUCKETS - 1)];
}

static uint64_t get(uint64_t key)
{
	for (struct bucket *b = bucket_of(key); b;
	     b = atomic_load_explicit(&b->next, memory_order_acquire))
		for (unsigned i = 0; i < ENTRIES; i++) {
			uint64_t value = atomic_load_explicit(&b->value[i], memory_order_acquire);

			if (atomic_load_explicit(&b->key[i], memory_order_acquire) == key)
				return value;
		}
	return 0;
}

static void lock(struct bucket *b)
{
	while (atomic_exchange(&b->lock, 1))
		while (atomic_load(&b->lock))
			__builtin_ia32_pause();
}

static void put(uint64_t key, uint64_t value)
{
	struct bucket *first = bucket_of(key), *b = first, *fresh;

	lock(first);
	for (;;) {
		for (unsigned i = 0; i < ENTRIES; i++) {
			uint64_t there = atomic_load_explicit(&b->key[i], memory_order_relaxed);

			if (there && there != key)
				continue;
			atomic_store_explicit(&b->value[i], value, memory_order_release);
			atomic_store_explicit(&b->key[i], key, memory_order_release);
			persist(b);
			goto done;
		}
		if (!atomic_load_explicit(&b->next, memory_order_relaxed))
			break;
		b = atomic_load_explicit(&b->next, memory_order_relaxed);
	}
	fresh = &table->spare[atomic_fetch_add(&table->used, 1) % SPARE];
	atomic_store_explicit(&fresh->value[0], value, memory_order_relaxed);
	atomic_store_explicit(&fresh->key[0], key, memory_order_relaxed);
	persist(fresh);
	atomic_store_explicit(&b->next, fresh, memory_order_release);
	persist(b);
done:
	atomic_store_explicit(&first->lock, 0, memory_order_release);
}

static void *work(void *number)
{
	uint64_t state = 88172645463325252ull + (uintptr_t)number * 1099511628211ull, sum = 0;

	for (long i = 0; i < operations; i++) {
		uint64_t key;

		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		key = (state >> 20) % 200000 + 1;
		if ((long)(state % 100) < reads)
			sum += get(key);
		else
			put(key, i);
	}
	return (void *)sum;
}

int main(int argc, char **argv)
{
	int fd = argc > 1 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
	unsigned threads = argc > 3 ? atoi(argv[3]) : 1;
	struct timespec start, end;
	pthread_t thread[64];

	if (argc > 2)
		operations = atol(argv[2]);
	if (argc > 4)
		reads = atol(argv[4]);
	if (fd < 0 || ftruncate(fd, sizeof(*table)) < 0)
		return 1;
	table = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (table == MAP_FAILED)
		return 1;
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (unsigned i = 0; i < threads && i < 64; i++)
		pthread_create(&thread[i], NULL, work, (void *)(uintptr_t)i);
	for (unsigned i = 0; i < threads && i < 64; i++)
		pthread_join(thread[i], NULL);
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%.6f seconds, %zu bytes of PM\n",
	       (end.tv_sec - start.tv_sec) + (end.tv_nsec - start.tv_nsec) * 1e-9, sizeof(*table));
	return 0;
}
