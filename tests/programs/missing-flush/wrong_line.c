/* SPDX-License-Identifier: BSD-3-Clause */
/* The flush goes to the pointer's target, not to the pointer; and to a neighbouring line. */
#include "../pm.h"

struct node {
	struct node *next;
	long pad[7];
	long value;
};

int main(int argc, char **argv)
{
	struct node *root = pm_map(argv), *node = root + 4;

	(void)argc;
	node->value = 7; /* expect: missing-flush */
	CLWB(WHEN_BUGGY(&node->next) WHEN_FIXED(&node->value)); /* expect: redundant-flush */
	root->next = node; /* expect: missing-flush */
	CLWB(WHEN_BUGGY(root->next) WHEN_FIXED(&root->next)); /* expect: redundant-flush */
	SFENCE();
	return 0;
}
