/* command: model */
/* options: --crashes 2 */
/*
 * An undo log whose recovery clears the log before what it has restored is persistent: one crash is
 * survived, a second one inside of the recovery is not.
 */
#include "../pm.h"

struct pm {
	_Alignas(64) volatile uint64_t logged;
	_Alignas(64) volatile uint64_t old;
	_Alignas(64) volatile uint64_t left;
	_Alignas(64) volatile uint64_t right; /* always the same as left, unless logged */
};

static void recover(struct pm *pm)
{
	pm->left = pm->old;
	pm->right = pm->old;
	WHEN_FIXED(PERSIST((void *)&pm->left); PERSIST((void *)&pm->right);)
	pm->logged = 0;
	PERSIST((void *)&pm->logged);
	WHEN_BUGGY(PERSIST((void *)&pm->left); PERSIST((void *)&pm->right);)
}

int main(int argc, char **argv)
{
	struct pm *pm = pm_map(argv);

	(void)argc;
	if (pm->logged)
		recover(pm);
	if (pm->left != pm->right)
		abort(); /* expect: crash-symptom */
	if (pm->left)
		return 0;
	pm->old = pm->left;
	PERSIST((void *)&pm->old);
	pm->logged = 1;
	PERSIST((void *)&pm->logged);
	pm->left = 1;
	PERSIST((void *)&pm->left);
	pm->right = 1;
	PERSIST((void *)&pm->right);
	pm->logged = 0;
	PERSIST((void *)&pm->logged);
	return 0;
}
