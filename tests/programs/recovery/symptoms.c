/* merged: a load is moved to another line */
/* command: check */
/* variants: 5 */
/* options: --timeout 1 --bad-exit 42 */
/* The ways in which a recovery fails. */
#include "../pm.h"

#include <assert.h>

struct pm {
	_Alignas(64) _Atomic uint64_t ready;
	_Alignas(64) struct pm *next; /* null, or itself */
};

int main(int argc, char **argv)
{
	struct pm *pm = pm_map(argv);

	(void)argc;
	if (pm->ready) {
#if BUG == 1
		if (pm->next->ready == 3) /* expect-1: crash-symptom cross-failure-race */
			return 1;
#elif BUG == 2
		assert(pm->next); /* expect-2: crash-symptom cross-failure-race */
#elif BUG == 3
		struct pm *next = pm->next; /* expect-3: cross-failure-race */

		while (!next) { __asm__ volatile("" : "+r"(next)); } /* expect-3: crash-symptom */
#elif BUG == 4
		if (!pm->next) /* expect-4: cross-failure-race */
			exit(42); /* expect-4: crash-symptom */
#elif BUG == 5
		if (!pm->next) /* expect-5: cross-failure-race */
			pause(); /* expect-5: crash-symptom */
#else
		if (!pm->next)
			return 42;
#endif
		return 0;
	}
	pm->next = pm;
#if BUG == 0
	PERSIST(&pm->next);
#endif
	pm->ready = 1;
	PERSIST(&pm->ready);
#if BUG != 0
	PERSIST(&pm->next);
#endif
	return 0;
}
