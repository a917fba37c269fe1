/* SPDX-License-Identifier: BSD-3-Clause */
/* merged: fields of a new object are set in one store */
/* The heap is PM: malloc, new, calloc, realloc, aligned memory; freed objects are forgotten. */
/* options: --pm-heap */
/* no-pm: yes */
#include "../pm.h"

#include <new>
#include <vector>

struct node {
	node *next;
	long value;
	char padding[112];
};

int main(int, char **)
{
	node *first = new node, *second = static_cast<node *>(calloc(1, sizeof(node)));
	void *aligned;
	char *grown;

	first->next = second; /* expect: missing-flush */
	WHEN_FIXED(PERSIST(first));
	second->value = 5;
	PERSIST(second);
	if (second->next || posix_memalign(&aligned, 256, 1000) || (uintptr_t)aligned % 256)
		return 9;
	*static_cast<long *>(aligned) = 1; /* expect: missing-flush */
	WHEN_FIXED(PERSIST(aligned));
	auto *temporary = new std::vector<long>(1000, 3);
	(*temporary)[5] = 4;
	delete temporary;
	grown = static_cast<char *>(malloc(100000));
	grown[99999] = 1;
	void *blocker = malloc(100000); /* or it would grow in place */
	grown = static_cast<char *>(realloc(grown, 1000000)); /* expect: missing-flush */
	if (grown[99999] != 1)
		return 8;
	WHEN_FIXED(free(grown));
	free(blocker);
	return 0;
}
