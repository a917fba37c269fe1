# SPDX-License-Identifier: BSD-3-Clause
"""The compile front-end, event by event: every access of the source, and none that is not there."""

import pathlib
import re
import unittest

from support import PROGRAMS, TestCase

SOURCE = r"""
#include "pm.h"
#include <immintrin.h>
#include <stdatomic.h>
struct pair { long a, b, c; };
static volatile struct pair ordinary;
int main(int argc, char **argv)
{
    char *p = pm_map(argv);
    long expected = 5;
    struct pair local;
#define P(type) (*(type *)p)
    P(long) = 1;                                                           // store 8
    P(volatile short) = 1;                                                 // store 2 volatile
    ordinary.a = P(int);                                                   // load 4
    P(long)++;                                                             // load 8, store 8
    local = P(struct pair);                                                // load 24 bulk
    P(struct pair) = local;                                                // store 24 bulk
    atomic_store_explicit(&P(_Atomic int), 1, memory_order_relaxed);       // store 4 atomic relaxed
    atomic_store_explicit(&P(_Atomic int), 1, memory_order_release);       // store 4 atomic release
    ordinary.b = atomic_load_explicit(&P(_Atomic char), memory_order_acquire); // load 1 atomic acquire
    atomic_fetch_add(&P(_Atomic long), 1);              // load 8 atomic rmw seq_cst, fence rmw, store 8 atomic rmw seq_cst
    atomic_compare_exchange_strong(&P(_Atomic long), &expected, 7); // load 8 atomic rmw seq_cst, fence rmw, failed-cas 8 atomic rmw seq_cst
    _mm_stream_si64(&P(long long), 5);                                     // store 8 nt
    _mm_clflush(p);                                                        // flush clflush
    CLFLUSHOPT(p);                                                         // flush clflushopt
    CLWB(p);                                                               // flush clwb
    _mm_sfence();                                                          // fence sfence
    _mm_mfence();                                                          // fence mfence
    atomic_thread_fence(memory_order_seq_cst);                             // fence mfence
    memset(p, 0, 200);                                                     // store 200 bulk
    memcpy(p + 512, p, argc * 300);                                        // load 600 bulk, store 600 bulk
    strcpy(p, "four");                                                     // store 5 bulk
    ordinary.c = strlen(p);                                                // load 5 bulk
    _mm_storeu_si128(&P(__m128i), _mm_set1_epi8((char)argc));              // store 16
    ordinary.a = write(2, p, 0) + memcmp(p, argv[0], 3);                   // load 3 bulk
    return (int)(local.c & 0);
}
"""

# Lanes that are not chosen are not accessed.
LANES = r"""
#include "pm.h"
#include <immintrin.h>
int main(int argc, char **argv)
{
    char *p = pm_map(argv);
    __m512i far = _mm512_setr_epi32(0, 64, 128, 192, 256, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    __m128i near = _mm_setr_epi32(0, 64, 128, 192);
    volatile __m512i wide, none = _mm512_setzero_si512();
    volatile __m128i four;
    volatile __m256 eight;
    char buffer[16];
    void *to = buffer;
    const void *from = p;
    long n = 7;
    wide = _mm512_maskz_loadu_epi32(0x000f, p);                            // load 16
    wide = _mm512_maskz_expandloadu_epi32(0x8080, p);                      // load 8
    wide = _mm512_mask_i32gather_epi32(none, 0x0005, far, p, 1);           // load 4, load 4
    four = _mm_i32gather_epi32((int *)p, near, 1);                         // load 4, load 4, load 4, load 4
    eight = _mm256_maskload_ps((float *)p, _mm256_setr_epi32(-1, -1, 0, 0, 0, 0, 0, -1)); // load 8, load 4
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) :: "memory"); // load 7 bulk asm
    _mm512_mask_storeu_epi32(p, 0x0003, wide);                             // store 8
    return argc > 9 ? ((char *)&four)[0] + ((char *)&eight)[0] : 0;
}
"""


class Events(TestCase):
    def expected(self, source):
        events = []
        for number, line in enumerate(source.splitlines(), 1):
            comment = re.search(r"// (.*)", line)
            if comment:
                events += [(number, event) for event in comment[1].split(", ")]
        return events

    def seen(self):
        events = []
        for line in (self.directory / "events").read_text().splitlines():
            match = re.match(r"\d+ (\S+)(.*?) @ prog.c:(\d+) main", line)
            if match:
                words = [w for w in match[2].split() if not w.startswith("0x")]
                events.append((int(match[3]), " ".join([match[1], *words])))
        return events

    def check(self, source, *flags):
        self.write("prog.c", source)
        for level in ("-O0", "-O1", "-O2", "-O3"):
            self.compile(level, "-Wno-unused-result", *flags, "-I", PROGRAMS, "prog.c", "-o", "prog")
            self.run_tool("run", "--quiet", "--pm", "pool", "--trace", "events", "./prog", "pool",
                          status=None)
            self.assertEqual(self.seen(), self.expected(source), level)

    def test_every_access_and_no_other(self):
        self.check(SOURCE)

    @unittest.skipUnless("avx512bw" in pathlib.Path("/proc/cpuinfo").read_text(), "needs AVX-512")
    def test_lanes(self):
        self.check(LANES, "-mavx512f", "-mavx512vl", "-mavx512bw", "-mavx2")


if __name__ == "__main__":
    unittest.main()
