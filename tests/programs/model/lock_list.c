/* command: model */
/* options: --timeout 2 --disable transient-data */
/*
 * Locks lie in PM, with a list of those that are held, for recovery to release. The list is never
 * flushed: it may lead anywhere. Fixed: recovery releases all locks, and reads no list.
 */
#include "../pm.h"

enum { LOCKS = 4 };

struct lock {
	_Alignas(64) volatile uint64_t held;
	struct lock *next;
};

struct pm {
	_Alignas(64) volatile uint64_t made;
	_Alignas(64) struct lock *volatile list;
	struct lock lock[LOCKS];
};

static void take(struct pm *pm, struct lock *lock)
{
	lock->held = 1;
	lock->next = pm->list;
	pm->list = lock; /* expect: missing-flush */
	PERSIST(lock);
}

static void release_all(struct pm *pm)
{
#ifdef FIXED
	for (int i = 0; i < LOCKS; i++)
		pm->lock[i].held = 0;
#else
	for (struct lock *lock = pm->list; lock; lock = lock->next) /* expect: cross-failure-race */
		lock->held = 0;
#endif
}

int main(int argc, char **argv)
{
	struct pm *pm = pm_map(argv);

	(void)argc;
	if (pm->made) {
		release_all(pm);
		for (int i = 0; i < LOCKS; i++)
			if (pm->lock[i].held)
				abort(); /* expect: crash-symptom */
		return 0;
	}
	pm->made = 1;
	PERSIST((void *)&pm->made);
	take(pm, &pm->lock[1]);
	take(pm, &pm->lock[2]);
	return 0;
}
