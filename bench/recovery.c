/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hash table in PM with an undo log of one entry: "insert N" inserts, "look KEY" recovers and
 * looks one key up. For crash checking: what does a crash point cost?
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SLOTS = 1 << 14 };

struct table {
	_Alignas(64) uint64_t slot;
	uint64_t key, value;
	_Alignas(64) _Atomic uint64_t logged;
	_Alignas(64) struct {
		uint64_t key, value;
	} entry[SLOTS];
};

static struct table *table;

static void persist(const volatile void *p)
{
	__asm__ volatile(".byte 0x66; xsaveopt %0" : "+m"(*(volatile char *)p));
	__asm__ volatile("sfence" ::: "memory");
}

static uint64_t find(uint64_t key)
{
	uint64_t at = key * 0x9e3779b97f4a7c15ull >> 50;

	while (table->entry[at].key && table->entry[at].key != key)
		at = (at + 1) % SLOTS;
	return at;
}

static void recover(void)
{
	if (!table->logged)
		return;
	table->entry[table->slot].key = table->key;
	table->entry[table->slot].value = table->value;
	persist(&table->entry[table->slot]);
	table->logged = 0;
	persist(&table->logged);
}

static void insert(uint64_t key, uint64_t value)
{
	uint64_t at = find(key);

	table->slot = at;
	table->key = table->entry[at].key;
	table->value = table->entry[at].value;
	persist(&table->slot);
	table->logged = 1;
	persist(&table->logged);
	table->entry[at].key = key;
	table->entry[at].value = value;
	persist(&table->entry[at]);
	table->logged = 0;
	persist(&table->logged);
}

int main(int argc, char **argv)
{
	int fd = argc == 4 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;

	if (fd < 0 || ftruncate(fd, sizeof(*table)) < 0)
		return 2;
	table = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (table == MAP_FAILED)
		return 2;
	recover();
	if (strcmp(argv[2], "look") == 0)
		return table->entry[find(strtoul(argv[3], NULL, 0))].value == 12345;
	for (uint64_t i = 1; i <= strtoul(argv[3], NULL, 0); i++)
		insert(i * 7919, i);
	return 0;
}
