/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "symbolic/libc/libc.h"

typedef int compare_with(const void *, const void *, void *);

struct sort {
	size_t size;
	compare_with *compare;
	void *context;
	char *room;
};

/* Merge sort as in glibc: the same comparisons in the same order, and equal ones stay in theirs. */
static void sort(const struct sort *s, char *base, size_t count)
{
	size_t size = s->size, left = count / 2, right = count - left;
	char *a = base, *b = base + left * size, *to = s->room;

	if (count <= 1)
		return;
	sort(s, a, left);
	sort(s, b, right);
	while (left && right) {
		if (s->compare(a, b, s->context) <= 0) {
			memcpy(to, a, size);
			a += size;
			left--;
		} else {
			memcpy(to, b, size);
			b += size;
			right--;
		}
		to += size;
	}
	memcpy(to, a, left * size);
	memcpy(base, s->room, (count - right) * size);
}

void own_qsort_r(void *base, size_t count, size_t size, compare_with *compare, void *context)
	LIBC(qsort_r);
void own_qsort(void *base, size_t count, size_t size, int (*compare)(const void *, const void *))
	LIBC(qsort);
void *own_bsearch(const void *key, const void *base, size_t count, size_t size,
		  int (*compare)(const void *, const void *)) LIBC(bsearch);

void own_qsort_r(void *base, size_t count, size_t size, compare_with *compare, void *context)
{
	struct sort s = { size, compare, context, NULL };

	if (!count || !size)
		return;
	s.room = malloc(count * size);
	if (!s.room)
		abort();
	sort(&s, base, count);
	free(s.room);
}

static int without_context(const void *a, const void *b, void *compare)
{
	return (*(int (**)(const void *, const void *))compare)(a, b);
}

void own_qsort(void *base, size_t count, size_t size, int (*compare)(const void *, const void *))
{
	own_qsort_r(base, count, size, without_context, &compare);
}

void *own_bsearch(const void *key, const void *base, size_t count, size_t size,
		  int (*compare)(const void *, const void *))
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		const char *p = (const char *)base + middle * size;
		int order = compare(key, p);

		if (order < 0)
			high = middle;
		else if (order > 0)
			low = middle + 1;
		else
			return (void *)p;
	}
	return NULL;
}
