/* SPDX-License-Identifier: BSD-3-Clause */
/* Streaming stores have left the cache: flushing them does nothing. Ordinary ones have not. */
#include "../pm.h"

#include <immintrin.h>

int main(int argc, char **argv)
{
	long long *p = pm_map(argv);

	_mm_stream_si64(p, argc);
	WHEN_BUGGY(CLWB(p)); /* expect: redundant-flush */
	_mm_stream_si64(p + 8, argc);
	p[9] = argc;
	CLWB(p + 8);
	_mm_sfence();
	return 0;
}
