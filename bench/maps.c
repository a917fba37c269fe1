/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inserts into maps in PM, each insert a small undo-log transaction: log, flush, fence, change,
 * flush, fence. The shapes are those of PMDK's example maps; the code is not.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define LINE 64

static void clwb(const void *p)
{
	__asm__ volatile(".byte 0x66; xsaveopt %0" : "+m"(*(volatile char *)p));
}

static void flush(const void *p, size_t n)
{
	for (uintptr_t line = (uintptr_t)p & ~(uintptr_t)(LINE - 1); line < (uintptr_t)p + n;
	     line += LINE)
		clwb((const void *)line);
}

static void fence(void)
{
	__asm__ volatile("sfence" ::: "memory");
}

/* ---- pool, allocator, transactions ---- */

enum { LOG_ENTRIES = 64, LOG_BYTES = 256, BUCKETS = 1 << 14, ORDER = 8 };

struct log_entry {
	void *address;
	uint64_t size;
	char data[LOG_BYTES];
};

struct pool {
	uint64_t used;
	uint64_t log_length;
	char padding[48];
	struct log_entry log[LOG_ENTRIES];
	void *root;
	char padding2[56];
	void *bucket[BUCKETS];
};

static struct pool *pool;

static void tx_begin(void)
{
	pool->log_length = 0;
	flush(&pool->log_length, sizeof(pool->log_length));
	fence();
}

static void tx_add(void *p, size_t n)
{
	struct log_entry *entry = &pool->log[pool->log_length];

	for (uint64_t i = 0; i < pool->log_length; i++)
		if (pool->log[i].address == p && pool->log[i].size >= n)
			return;
	entry->address = p;
	entry->size = n;
	memcpy(entry->data, p, n);
	flush(entry, 16 + n);
	fence();
	pool->log_length++;
	flush(&pool->log_length, sizeof(pool->log_length));
	fence();
}

static void tx_commit(void)
{
	for (uint64_t i = 0; i < pool->log_length; i++)
		flush(pool->log[i].address, pool->log[i].size);
	fence();
	pool->log_length = 0;
	flush(&pool->log_length, sizeof(pool->log_length));
	fence();
}

/* New objects are flushed by their user and need no log. */
static void *tx_new(size_t n)
{
	char *p = (char *)pool + pool->used;

	tx_add(&pool->used, sizeof(pool->used));
	pool->used += (n + LINE - 1) / LINE * LINE;
	return p;
}

/* ---- binary search tree ---- */

struct tree {
	struct tree *child[2];
	uint64_t key, value;
};

static void tree_insert(uint64_t key, uint64_t value)
{
	struct tree **link = (struct tree **)&pool->root, *node;

	tx_begin();
	while (*link && (*link)->key != key)
		link = &(*link)->child[key > (*link)->key];
	if (*link) {
		tx_add(&(*link)->value, 8);
		(*link)->value = value;
	} else {
		node = tx_new(sizeof(*node));
		node->child[0] = node->child[1] = NULL;
		node->key = key;
		node->value = value;
		flush(node, sizeof(*node));
		tx_add(link, sizeof(*link));
		*link = node;
	}
	tx_commit();
}

/* ---- hash table with chains ---- */

struct entry {
	struct entry *next;
	uint64_t key, value;
};

static void hash_insert(uint64_t key, uint64_t value)
{
	void **bucket = &pool->bucket[key * 0x9e3779b97f4a7c15ull >> 50];
	struct entry *entry;

	tx_begin();
	for (entry = *bucket; entry && entry->key != key; entry = entry->next)
		;
	if (entry) {
		tx_add(&entry->value, 8);
		entry->value = value;
	} else {
		entry = tx_new(sizeof(*entry));
		entry->next = *bucket;
		entry->key = key;
		entry->value = value;
		flush(entry, sizeof(*entry));
		tx_add(bucket, sizeof(*bucket));
		*bucket = entry;
	}
	tx_commit();
}

/* ---- B-tree without merging ---- */

struct leaf {
	uint64_t count;
	struct leaf *child[ORDER + 1];
	uint64_t key[ORDER], value[ORDER];
};

static struct leaf *btree_split(struct leaf *parent, unsigned at, struct leaf *full)
{
	struct leaf *right = tx_new(sizeof(*right));
	unsigned half = ORDER / 2;

	memset(right, 0, sizeof(*right));
	right->count = ORDER - half - 1;
	memcpy(right->key, full->key + half + 1, right->count * 8);
	memcpy(right->value, full->value + half + 1, right->count * 8);
	memcpy(right->child, full->child + half + 1, (right->count + 1) * 8);
	flush(right, sizeof(*right));
	tx_add(&full->count, 8);
	full->count = half;
	tx_add(parent, sizeof(*parent));
	for (unsigned i = parent->count; i > at; i--) {
		parent->key[i] = parent->key[i - 1];
		parent->value[i] = parent->value[i - 1];
		parent->child[i + 1] = parent->child[i];
	}
	parent->key[at] = full->key[half];
	parent->value[at] = full->value[half];
	parent->child[at + 1] = right;
	parent->count++;
	return right;
}

static struct leaf *btree_new(void)
{
	struct leaf *node = tx_new(sizeof(*node));

	memset(node, 0, sizeof(*node));
	flush(node, sizeof(*node));
	return node;
}

static void btree_put(struct leaf *node, uint64_t key, uint64_t value)
{
	unsigned i = 0;

	tx_add(node, sizeof(*node));
	for (i = node->count; i > 0 && node->key[i - 1] > key; i--) {
		node->key[i] = node->key[i - 1];
		node->value[i] = node->value[i - 1];
	}
	node->key[i] = key;
	node->value[i] = value;
	node->count++;
}

static void btree_insert(uint64_t key, uint64_t value)
{
	struct leaf *node;

	tx_begin();
	if (!pool->root) {
		node = btree_new();
		tx_add(&pool->root, 8);
		pool->root = node;
	}
	node = pool->root;
	if (node->count == ORDER) {
		struct leaf *top = btree_new();

		tx_add(&pool->root, 8);
		tx_add(top, sizeof(*top));
		top->child[0] = node;
		btree_split(top, 0, node);
		pool->root = top;
		node = top;
	}
	while (node->child[0]) {
		unsigned i = 0;

		while (i < node->count && node->key[i] < key)
			i++;
		if (node->child[i]->count == ORDER) {
			struct leaf *right = btree_split(node, i, node->child[i]);

			node = key > node->key[i] ? right : node->child[i];
		} else {
			node = node->child[i];
		}
	}
	btree_put(node, key, value);
	tx_commit();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*insert)(uint64_t key, uint64_t value);
	} maps[] = { { "tree", tree_insert }, { "hash", hash_insert }, { "btree", btree_insert } };
	size_t size = 512ul << 20;
	long count = argc > 3 ? atol(argv[3]) : 100000;
	uint64_t key = 1;
	int fd;

	if (argc < 3)
		return 1;
	fd = open(argv[2], O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, size) < 0)
		return 1;
	pool = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (pool == MAP_FAILED)
		return 1;
	pool->used = sizeof(*pool);
	flush(&pool->used, 8);
	fence();
	for (size_t m = 0; m < sizeof(maps) / sizeof(*maps); m++)
		if (strcmp(maps[m].name, argv[1]) == 0) {
			struct timespec start, end;

			clock_gettime(CLOCK_MONOTONIC, &start);
			for (long i = 0; i < count; i++) {
				key = key * 6364136223846793005ull + 1442695040888963407ull;
				maps[m].insert(key >> 20, i);
			}
			clock_gettime(CLOCK_MONOTONIC, &end);
			printf("%.6f seconds, %lu bytes of PM\n",
			       (end.tv_sec - start.tv_sec) + (end.tv_nsec - start.tv_nsec) * 1e-9,
			       pool->used);
			return 0;
		}
	return 1;
}
