/* command: model */
/*
 * Figure 4 of the Jaaru paper: a child is filled in, flushed, and then made reachable by a commit
 * store, so that whoever reads the pointer may read the child. The bug: the child is not flushed.
 */
#include "../pm.h"

struct child {
	_Alignas(64) char data[32];
};

struct node {
	_Alignas(64) struct child *volatile child;
	struct child room;
};

static void add_child(struct node *node, const char *data)
{
	struct child *child = &node->room;

	strcpy(child->data, data); /* expect: missing-flush */
	WHEN_FIXED(CLFLUSH(child);)
	node->child = child;
	CLFLUSH((void *)&node->child);
}

static const char *read_child(const struct node *node)
{
	return node->child ? node->child->data : NULL;
}

int main(int argc, char **argv)
{
	struct node *node = pm_map(argv);
	const char *data = read_child(node);

	(void)argc;
	if (!data)
		add_child(node, "data");
	else if (data[0] != 'd' || data[3] != 'a' || data[4]) /* expect: cross-failure-race */
		abort();                           /* expect: crash-symptom */
	return 0;
}
