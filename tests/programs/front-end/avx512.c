/* SPDX-License-Identifier: BSD-3-Clause */
/* Stores under masks, scattered and compressed: exactly the chosen lanes. */
/* flags: -mavx512f -mavx512vl -mavx512bw */
/* needs: avx512bw */
#include "../pm.h"

#include <immintrin.h>

int main(int argc, char **argv)
{
	char *p = pm_map(argv);
	__m512i value = _mm512_set1_epi32(argc);
	__m512i far = _mm512_setr_epi32(0, 64, 128, 192, 256, 320, 384, 448, 512, 576, 640, 704, 768, 832, 896, 960);

	_mm512_mask_storeu_epi32(p + 32, 0x00ff, value); /* the low lanes stay on the first line */
	CLFLUSH(p);
	_mm512_mask_storeu_epi32(p + 128 + 32, 0x8001, value); /* expect: missing-flush */
	CLFLUSH(p + 128);
	_mm512_mask_i32scatter_epi32(p + 4096, 0x0005, far, value, 1); /* expect: missing-flush */
	CLFLUSH(p + 4096);
	_mm512_mask_compressstoreu_epi32(p + 8192 + 56, 0x8080, value); /* two lanes: 8 bytes */
	CLFLUSH(p + 8192);
	_mm512_stream_si512((__m512i *)(p + 12288), value); /* expect: missing-fence */
	_mm256_mask_storeu_epi8(p + 16384, 0, _mm256_setzero_si256());
#ifdef FIXED
	CLFLUSH(p + 192);
	CLFLUSH(p + 4096 + 128);
	SFENCE();
#endif
	return 0;
}
