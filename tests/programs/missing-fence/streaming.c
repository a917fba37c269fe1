/* SPDX-License-Identifier: BSD-3-Clause */
/* A non-temporal store needs no flush, but a fence. */
#include "../pm.h"

#include <immintrin.h>

int main(int argc, char **argv)
{
	long long *p = pm_map(argv);

	_mm_stream_si64(p, argc);
	_mm_sfence();
	_mm_stream_si64(p + 1, argc); /* expect: missing-fence */
	WHEN_FIXED(_mm_sfence());
	return 0;
}
