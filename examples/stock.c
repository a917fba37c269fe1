/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A shop: one thread takes goods in, another one sells them. Both hold the lock while they count,
 * but what came in is persisted after the lock was released. A sale that is persistent while the
 * goods are not is a sale of nothing.
 */
#include <emmintrin.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { DAYS = 2000 };

struct shop {
	_Alignas(64) uint64_t stock;
	_Alignas(64) uint64_t sold;
};

static struct shop *shop;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void persist(const void *p)
{
	_mm_clflush(p);
	_mm_sfence();
}

static void *take_in(void *unused)
{
	for (int i = 0; i < DAYS; i++) {
		pthread_mutex_lock(&lock);
		shop->stock += 2;
		pthread_mutex_unlock(&lock);
		persist(&shop->stock);
	}
	return unused;
}

static void *sell(void *unused)
{
	for (int i = 0; i < DAYS; i++) {
		pthread_mutex_lock(&lock);
		if (shop->stock > shop->sold)
			shop->sold++;
		persist(&shop->sold);
		pthread_mutex_unlock(&lock);
	}
	return unused;
}

int main(int argc, char **argv)
{
	int fd = argc > 1 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
	pthread_t thread[2];

	if (fd < 0 || ftruncate(fd, sizeof(*shop)) < 0)
		return 1;
	shop = mmap(NULL, sizeof(*shop), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shop == MAP_FAILED)
		return 1;
	pthread_create(&thread[0], NULL, take_in, NULL);
	pthread_create(&thread[1], NULL, sell, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	printf("%lu came in\n", shop->stock);
	return 0;
}
