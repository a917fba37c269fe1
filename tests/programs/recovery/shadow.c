/* command: check */
/* variants: 3 */
/* Shadow copy: a new version is written elsewhere, then one pointer is swapped. */
#include "../pm.h"

struct object {
	_Alignas(64) uint64_t length;
	char text[56];
};

struct pm {
	_Alignas(64) _Atomic uint64_t root; /* offset */
	_Alignas(64) struct object object[4];
};

static struct object *at(struct pm *pm, uint64_t offset)
{
	return (struct object *)((char *)pm + offset);
}

static void replace(struct pm *pm, unsigned slot, const char *text)
{
	struct object *object = &pm->object[slot];

	object->length = strlen(text);
	memcpy(object->text, text, strlen(text) + 1);
#if BUG == 1 /* not persisted before the swap */
	pm->root = (char *)object - (char *)pm;
	PERSIST(&pm->root);
	PERSIST(object);
#elif BUG == 2 /* the swapped object is changed */
	PERSIST(object);
	pm->root = (char *)object - (char *)pm;
	PERSIST(&pm->root);
	object->length++;
	PERSIST(object);
#else
	PERSIST(object);
	pm->root = (char *)object - (char *)pm;
	PERSIST(&pm->root);
#endif
#if BUG == 3 /* the old version is reused while it may still be the root */
	if (slot) {
		pm->object[slot - 1].length = 0;
		PERSIST(&pm->object[slot - 1]);
	}
#endif
}

int main(int argc, char **argv)
{
	struct pm *pm = pm_map(argv);
	uint64_t root = pm->root;

	(void)argc;
	if (root) {
		struct object *object = at(pm, root);

		if (object->length > 40) /* expect-1: cross-failure-race */ /* expect-2: cross-failure-race */
			abort();
	}
#if BUG == 3 /* this recovery looks at the version that is being cleared */
	if (pm->object[0].length == 99) /* expect-3: cross-failure-race */
		return 1;
#endif
	replace(pm, 0, "one");
	replace(pm, 1, "two");
	return 0;
}
