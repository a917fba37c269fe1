/* SPDX-License-Identifier: BSD-3-Clause */
/* A binary tree of three keys; the way to the left child of a right child is not written back. */
#define BYTES 3
#define ALPHABET "\1\2\3\4\5\6\7"
#include "explore.h"

struct node {
	uint64_t key;
	struct node *child[2];
	uint64_t unused[5];
};

static void run(uint64_t *pm, const uint8_t *in)
{
	struct node *root = NULL, *next = (struct node *)pm;

	for (int i = 0; i < 3; i++) {
		struct node **at = &root;
		int depth = 0, right = 0;

		while (*at) {
			if (B((*at)->key == in[i]))
				break;
			right = B((*at)->key < in[i]) ? 1 : 0;
			at = &(*at)->child[right];
			depth++;
		}
		if (*at)
			continue;
		next->key = in[i];
		next->child[0] = next->child[1] = NULL;
		PERSIST(next);
		*at = next++; /* finds: missing-flush */
		if (at != &root && !(depth == 2 && !right))
			PERSIST(at);
	}
}
