/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Code that does not touch PM: what instrumentation costs where it has nothing to do. compute NAME
 * [POOL]: with a pool it has some, all the same.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static uint64_t state = 88172645463325252ull;

static uint64_t next_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* ---- pointer chasing ---- */

struct node {
	struct node *next;
	long value;
};

static long chase(long rounds)
{
	enum { NODES = 1 << 16 };
	struct node *nodes = calloc(NODES, sizeof(*nodes)), *at;
	long sum = 0;

	for (long i = 0; i < NODES; i++) {
		nodes[i].value = i;
		nodes[i].next = &nodes[i];
	}
	for (long i = NODES - 1; i > 0; i--) { /* a random permutation with one cycle */
		long j = next_random() % i;
		struct node *other = nodes[i].next;

		nodes[i].next = nodes[j].next;
		nodes[j].next = other;
	}
	at = nodes;
	for (long i = 0; i < rounds; i++) {
		sum += at->value;
		at = at->next;
	}
	free(nodes);
	return sum;
}

/* ---- a loop of stores ---- */

__attribute__((noinline)) static void fill(long *p, long n, long base)
{
	for (long i = 0; i < n; i++)
		p[i] = base + i;
}

static long store_loop(long rounds)
{
	enum { N = 1 << 12 };
	long *p = malloc(N * sizeof(long)), sum = 0;

	for (long i = 0; i < rounds; i++) {
		fill(p, N, i);
		sum += p[i % N];
	}
	free(p);
	return sum;
}

/* ---- insertion sort ---- */

__attribute__((noinline)) static void sort(int *a, int n)
{
	for (int i = 1; i < n; i++) {
		int value = a[i], j = i;

		for (; j > 0 && a[j - 1] > value; j--)
			a[j] = a[j - 1];
		a[j] = value;
	}
}

static long insertion_sort(long rounds)
{
	enum { N = 2000 };
	int *a = malloc(N * sizeof(int));
	long sum = 0;

	for (long r = 0; r < rounds; r++) {
		for (int i = 0; i < N; i++)
			a[i] = (int)next_random();
		sort(a, N);
		sum += a[N / 2];
	}
	free(a);
	return sum;
}

/* ---- a binary tree: branches, pointers, stores into fields ---- */

struct tree {
	struct tree *child[2];
	uint64_t key;
	long count;
};

static struct tree *tree_insert(struct tree *root, uint64_t key)
{
	struct tree **link = &root;

	while (*link && (*link)->key != key)
		link = &(*link)->child[key > (*link)->key];
	if (!*link) {
		*link = calloc(1, sizeof(**link));
		(*link)->key = key;
	}
	(*link)->count++;
	return root;
}

static long tree(long rounds)
{
	struct tree *root = NULL;

	for (long i = 0; i < rounds; i++)
		root = tree_insert(root, next_random() % 100000);
	return root->count;
}

static void map_pool(const char *path)
{
	enum { SIZE = 4096 };
	int fd = open(path, O_RDWR | O_CREAT, 0600);

	if (fd < 0 || ftruncate(fd, SIZE) < 0 ||
	    mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED)
		exit(1);
	close(fd);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		long (*run)(long rounds);
		long rounds;
	} all[] = {
		{ "chase", chase, 60000000 },
		{ "store", store_loop, 400000 },
		{ "sort", insertion_sort, 800 },
		{ "tree", tree, 3000000 },
	};

	if (argc > 2)
		map_pool(argv[2]);
	for (size_t i = 0; argc > 1 && i < sizeof(all) / sizeof(*all); i++)
		if (strcmp(all[i].name, argv[1]) == 0) {
			printf("%ld\n", all[i].run(all[i].rounds));
			return 0;
		}
	return 1;
}
