/* SPDX-License-Identifier: BSD-3-Clause */
/* merged: copies become stores */
/* Every form of a store is seen: each is lost here on a line of its own. */
/* flags: -mcx16 -mavx */
/* needs: avx */
#include "../pm.h"

#include <immintrin.h>
#include <stdatomic.h>

struct five {
	long a, b, c, d, e;
};
struct bits {
	unsigned x : 3, y : 9;
};
static struct five source = { 1, 2, 3, 4, 5 };

int main(int argc, char **argv)
{
	char *p = pm_map(argv);
	__int128 wide = argc;
	long r = 7;

#define AT(n, type) (*(type *)(p + 64 * (n)))
	AT(0, char) = 1; /* expect: missing-flush */
	AT(1, short) = 1; /* expect: missing-flush */
	AT(2, float) = 1; /* expect: missing-flush */
	AT(3, double) = argc; /* expect: missing-flush */
	AT(4, void *) = p; /* expect: missing-flush */
	AT(5, long double) = argc; /* expect: missing-flush */
	AT(6, __int128) = wide; /* expect: missing-flush */
	AT(7, struct five) = source; /* expect: missing-flush */
	AT(8, struct bits).y = 5; /* expect: missing-flush */
	AT(9, __m256i) = _mm256_set1_epi32(argc); /* expect: missing-flush */
	memset(p + 64 * 10, argc, 40); /* expect: missing-flush */
	memcpy(p + 64 * 11, argv[0], 3); /* expect: missing-flush */
	memmove(p + 64 * 12, p, argc); /* expect: missing-flush */
	strcpy(p + 64 * 13, "text"); /* expect: missing-flush */
	AT(14, volatile int) = 1; /* expect: missing-flush */
	atomic_store_explicit(&AT(15, _Atomic int), 1, memory_order_release); /* expect: missing-flush */
	atomic_store(&AT(16, _Atomic long), 1); /* expect: missing-flush */
	atomic_fetch_or(&AT(17, _Atomic char), 4); /* expect: missing-flush */
	__sync_bool_compare_and_swap(&AT(18, long), 0, 1); /* expect: missing-flush */
	__sync_bool_compare_and_swap(&AT(19, __int128), 0, wide); /* expect: missing-flush */
	__sync_bool_compare_and_swap(&AT(20, long), 55, 1);
	__asm__ volatile("movq %1, %0" : "=m"(AT(21, long)) : "r"(r)); /* expect: missing-flush */
	__asm__ volatile("movl %k1, 4(%0)" ::"r"(p + 64 * 22), "r"(r) : "memory"); /* expect: missing-flush */
	__asm__ volatile("lock; xaddq %0, %1" : "+r"(r), "+m"(AT(23, long))::"memory"); /* expect: missing-flush */
	__asm__ volatile("xchgq %0, %1" : "+r"(r), "+m"(AT(24, long))); /* expect: missing-flush */
	__asm__ volatile("lock cmpxchg16b %0" : "+m"(AT(25, __int128)) : "a"(0L), "d"(0L), "b"(1L), "c"(2L) : "memory", "cc"); /* expect: missing-flush */
	__asm__ volatile("lock cmpxchgq %1, %0" : "+m"(AT(26, long)) : "r"(5L), "a"(99L) : "memory", "cc");
	{
		void *to = p + 64 * 27;
		const void *from = argv[0];
		long n = 3;

		__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n)::"memory"); /* expect: missing-flush */
	}
	{
		void *to = p + 64 * 28;
		long n = 10;

		__asm__ volatile("cld; rep stosq" : "+D"(to), "+c"(n) : "a"(1L) : "memory"); /* expect: missing-flush */
	}
	_mm256_maskstore_ps(&AT(30, float), _mm256_set_epi32(-1, 0, -1, 0, 0, 0, 0, 0), _mm256_set1_ps(1)); /* expect: missing-flush */
	*(long *)(p + 64 * 32 - 4) = argc; /* expect: missing-flush */
	AT(40, struct five) = (struct five){ .b = argc }; /* expect: missing-flush */
#ifdef FIXED
	for (int line = 0; line < 41; line++)
		if ((line != 20 && line != 26 && line < 33) || line == 40)
			CLFLUSH(p + 64 * line);
#endif
	return 0;
}
