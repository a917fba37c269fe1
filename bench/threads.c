/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads: "switch THREADS N" lets them give way to each other N times, and prints what that takes,
 * on the processor's clock; "insert THREADS N" puts N keys into a table in PM with a lock for each
 * bucket; "look KEY" looks one of them up.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { BUCKETS = 64, SLOTS = 63 };

struct bucket {
	_Alignas(64) _Atomic uint64_t used;
	_Alignas(64) uint64_t key[SLOTS + 1];
};

static struct bucket *table;
static pthread_mutex_t lock[BUCKETS];
static long threads, keys, turns;

static void persist(const volatile void *p)
{
	__asm__ volatile(".byte 0x66; xsaveopt %0" : "+m"(*(volatile char *)p));
	__asm__ volatile("sfence" ::: "memory");
}

static void insert(uint64_t key)
{
	uint64_t at = key * 0x9e3779b97f4a7c15ull >> 58;
	struct bucket *bucket = &table[at];

	pthread_mutex_lock(&lock[at]);
	if (bucket->used < SLOTS) {
		bucket->key[bucket->used] = key;
		persist(&bucket->key[bucket->used]);
		bucket->used++;
		persist(&bucket->used);
	}
	pthread_mutex_unlock(&lock[at]);
}

static void *insert_share(void *first)
{
	for (long key = (long)first; key < keys; key += threads)
		insert(key + 1);
	return NULL;
}

static int look(uint64_t key)
{
	const struct bucket *bucket = &table[key * 0x9e3779b97f4a7c15ull >> 58];

	for (uint64_t i = 0; i < bucket->used; i++)
		if (bucket->key[i] == key)
			return 0;
	return 1;
}

static void *give_way(void *unused)
{
	for (long i = 0; i < turns; i++)
		sched_yield();
	return unused;
}

static void run(void *(*function)(void *))
{
	pthread_t *thread = calloc(threads, sizeof(*thread));

	for (long i = 0; i < threads; i++)
		if (pthread_create(&thread[i], NULL, function, (void *)i))
			abort();
	for (long i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	free(thread);
}

static void measure_switches(void)
{
	struct timespec start, end;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
	run(give_way);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	printf("%.1f\n",
	       ((end.tv_sec - start.tv_sec) * 1e9 + end.tv_nsec - start.tv_nsec) / threads / turns);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	int fd = argc > 3 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;

	if (fd < 0 || ftruncate(fd, sizeof(*table) * BUCKETS) < 0)
		return 2;
	table = mmap(NULL, sizeof(*table) * BUCKETS, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (table == MAP_FAILED)
		return 2;
	for (int i = 0; i < BUCKETS; i++)
		pthread_mutex_init(&lock[i], NULL);
	if (strcmp(argv[2], "look") == 0)
		return look(atol(argv[3]));
	threads = atol(argv[3]);
	if (strcmp(argv[2], "switch") == 0 && argc > 4) {
		turns = atol(argv[4]);
		measure_switches();
	} else if (argc > 4) {
		keys = atol(argv[4]);
		run(insert_share);
	}
	return 0;
}
