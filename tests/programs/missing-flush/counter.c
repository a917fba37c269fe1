/* SPDX-License-Identifier: BSD-3-Clause */
/* A counter beside the data is forgotten. */
#include "../pm.h"

struct list {
	long value[8];
	long length;
};

static void append(struct list *list, long value)
{
	list->value[list->length] = value;
	PERSIST(&list->value[list->length]);
	list->length++; /* expect: missing-flush */
	WHEN_FIXED(PERSIST(&list->length));
}

int main(int argc, char **argv)
{
	struct list *list = pm_map(argv);

	(void)argc;
	append(list, 1);
	append(list, 2);
	return 0;
}
