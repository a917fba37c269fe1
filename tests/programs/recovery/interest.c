/* command: check */
/* Regions of interest, before and after the crash. */
#include "../pm.h"

#include <perdure/perdure.h>

struct pm {
	_Alignas(64) uint64_t a;
	_Alignas(64) uint64_t b;
};

int main(int argc, char **argv)
{
	struct pm *pm = pm_map(argv);
	uint64_t sum = 0;

	(void)argc;
	if (perdure_stage() == 0) {
		perdure_roi_begin(0, PERDURE_POST);
		pm->a = 1;
		PERSIST(&pm->a);
		perdure_roi_begin(1, PERDURE_PRE | PERDURE_POST);
		pm->b = 1;
		PERSIST(&pm->b);
		perdure_roi_end(1, PERDURE_PRE | PERDURE_POST);
		return 0;
	}
	sum += pm->a;
	WHEN_FIXED(sum += pm->b;)
	perdure_roi_begin(1, PERDURE_POST);
	sum += pm->a;
	sum += pm->b; /* expect: cross-failure-race */
	perdure_roi_end(1, PERDURE_POST);
	return sum == 12345;
}
