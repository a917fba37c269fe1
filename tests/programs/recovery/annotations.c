/* command: check */
/* Regions where there is nothing to look for. */
#include "../pm.h"

#include <perdure/perdure.h>

struct pm {
	_Alignas(64) uint64_t a;
	_Alignas(64) uint64_t b;
	_Alignas(64) uint64_t c;
};

int main(int argc, char **argv)
{
	struct pm *pm = pm_map(argv);
	uint64_t sum = 0;

	(void)argc;
	if (perdure_stage() == 0) {
		perdure_skip_crash_begin(1);
		pm->a = 1; /* is never caught in between */
		PERSIST(&pm->a);
		perdure_skip_crash_end(1);
		pm->b = 1;
		PERSIST(&pm->b);
		pm->c = 1;
		PERSIST(&pm->c);
		return 0;
	}
	sum += pm->a;
	perdure_skip_check_begin(1, PERDURE_POST);
	sum += pm->b;
	perdure_skip_check_end(1, PERDURE_POST);
	WHEN_FIXED(perdure_complete(1, PERDURE_POST);)
	sum += pm->c; /* expect: cross-failure-race */
	return sum == 12345;
}
