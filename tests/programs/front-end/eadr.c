/* SPDX-License-Identifier: BSD-3-Clause */
/* With persistent caches only non-temporal stores can be lost. */
/* options: --model eadr */
#include "../pm.h"

#include <immintrin.h>

int main(int argc, char **argv)
{
	long long *p = pm_map(argv);

	p[0] = 1;
	CLWB(p + 8);
	SFENCE();
	SFENCE();
	_mm_stream_si64(p + 16, argc); /* expect: missing-fence */
	WHEN_FIXED(_mm_sfence());
	return 0;
}
