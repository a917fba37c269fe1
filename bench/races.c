/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads on a hash table in PM with a lock for each bucket, or with a list that is searched. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <immintrin.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { BUCKETS = 1 << 14, ENTRIES = 7, THREADS = 8 };

struct bucket {
	_Alignas(64) uint32_t lock;
	uint32_t count;
	uint64_t key[ENTRIES];
};
static struct bucket *table;
static long operations;

static void lock(struct bucket *b)
{
	while (__atomic_exchange_n(&b->lock, 1, __ATOMIC_ACQUIRE))
		_mm_pause();
}

static void unlock(struct bucket *b)
{
	__atomic_store_n(&b->lock, 0, __ATOMIC_RELEASE);
}

static void *work(void *number)
{
	unsigned seed = (unsigned)(uintptr_t)number * 7919 + 1;
	uintptr_t found = 0;

	for (long i = 0; i < operations / THREADS; i++) {
		struct bucket *b;
		uint64_t key;

		seed = seed * 1103515245 + 12345;
		key = seed >> 8;
		b = &table[key % BUCKETS];
		if (seed & 1 << 30) {
			for (unsigned k = 0; k < ENTRIES; k++)
				found += __atomic_load_n(&b->key[k], __ATOMIC_ACQUIRE) == key;
			continue;
		}
		lock(b);
		b->key[b->count++ % ENTRIES] = key;
		_mm_clflush(b);
		_mm_sfence();
		unlock(b);
	}
	return (void *)found;
}

int main(int argc, char **argv)
{
	int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
	struct timespec start, end;
	pthread_t thread[THREADS];

	operations = argc > 2 ? atol(argv[2]) : 100000;
	if (ftruncate(fd, sizeof(*table) * BUCKETS) < 0)
		return 1;
	table = mmap(NULL, sizeof(*table) * BUCKETS, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (table == MAP_FAILED)
		return 1;
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, work, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%.6f seconds, %zu bytes\n",
	       (end.tv_sec - start.tv_sec) + (end.tv_nsec - start.tv_nsec) / 1e9,
	       sizeof(*table) * BUCKETS);
	return 0;
}
