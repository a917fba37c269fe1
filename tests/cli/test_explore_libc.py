# SPDX-License-Identifier: BSD-3-Clause
"""perdure explore: functions of libc and of libstdc++ that keep symbolic data."""

import json
import subprocess
import unittest

from support import PROGRAMS, TOOLS, TestCase

LIBC = PROGRAMS.parent / "symbolic" / "libc.c"
QUIET = ("-Wno-format", "-Wno-format-security", "-Wno-format-nonliteral")


class Libc(TestCase):
    def build(self, source, name, *flags, compiler="perdure-cc"):
        subprocess.run([TOOLS / compiler, "--symbolic", "-g", "-O2", *QUIET, *flags, source, "-o", name],
                       cwd=self.directory, check=True)

    def explore(self, *words):
        subprocess.run([TOOLS / "perdure", "explore", "--inputs", "none", "--json", "result", *words],
                       cwd=self.directory, capture_output=True, text=True, timeout=120)
        return json.loads((self.directory / "result").read_text())

    def cases(self):
        return subprocess.run(["./libc"], cwd=self.directory, capture_output=True, text=True,
                              check=True).stdout.split()

    def test_random(self):
        self.build(LIBC, "libc")
        subprocess.run(["./libc", "random"], cwd=self.directory, check=True)

    def test_symbolic_then_solved(self):
        self.build(LIBC, "libc")
        for name in self.cases():
            with self.subTest(case=name):
                result = self.explore("--sym-stdin", "3", "./libc", name)
                self.assertEqual(result["crashes"], [])
                if name not in ("kinds", "compares"):  # these are one expression each
                    self.assertGreater(result["stats"]["paths"], 5)

    def test_a_wrong_result_is_seen(self):
        self.build(LIBC, "libc", "-DWRONG")
        for name in self.cases():
            with self.subTest(case=name):
                self.assertTrue(self.explore("--sym-stdin", "2", "./libc", name)["crashes"])

    def write(self, name, text):
        (self.directory / name).write_text(text)
        return name

    def test_containers(self):
        self.build(self.write("program.cc", """
#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <unistd.h>
#include <unordered_map>
#include <vector>
int main()
{
    char in[4];
    if (read(0, in, 4) != 4)
        return 1;
    std::string key(in, 2), longer = key + "x";
    std::map<std::string, int> map = {{"ab", 1}};
    std::unordered_map<std::string, int> hashed = {{"cd", 3}};
    map[key] = 2;
    if (map["ab"] == 2)
        abort();
    if (hashed.count(key))
        abort();
    std::vector<char> sorted(in, in + 4);
    std::sort(sorted.begin(), sorted.end());
    if (sorted[0] == 'd' && sorted[3] == 'z')
        abort();
    if (longer == "zzx")
        abort();
}
"""), "program", compiler="perdure-c++")
        crashes = {c["line"] for c in self.explore("--sym-stdin", "4", "./program")["crashes"]}
        self.assertEqual(crashes, {19, 21, 25, 27})

    def test_hash_of_libstdcxx(self):
        """Containers show their order: the function must be the one that libraries have, too."""
        source = self.write("program.cc", """
#include <cstdio>
#include <string>
int main()
{
    std::string text;
    for (int i = 0; i < 40; i++, text += (char)(i * 37))
        std::printf("%zx\\n", std::hash<std::string>()(text));
}
""")
        self.build(source, "program", compiler="perdure-c++")
        subprocess.run(["g++", source, "-o", "real"], cwd=self.directory, check=True)
        outputs = [subprocess.run([name], cwd=self.directory, capture_output=True, check=True).stdout
                   for name in ("./program", "./real")]
        self.assertEqual(*outputs)

    def test_sizes_of_objects(self):
        self.build(self.write("program.c", """
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void)
{
    unsigned char in[4];
    unsigned large;
    if (read(0, in, 4) != 4)
        return 1;
    char *p = malloc(in[0] + 1u);
    memset(p, 0, in[0]);
    if (in[0] == 77)
        abort();
    memcpy(&large, in, 4);
    free(p);
    p = realloc(calloc(large, 1), large);
    if (large == 0x321)
        abort();
    free(p);
}
"""), "program")
        result = self.explore("--sym-stdin", "4", "./program")
        self.assertEqual({c["line"] for c in result["crashes"]}, {14, 19})

    def test_formats_that_are_left_to_libc(self):
        """What they are given is fixed: no path goes on with something else."""
        self.build(self.write("program.c", """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
    char in[1], out[8];
    if (read(0, in, 1) != 1)
        return 1;
    snprintf(out, sizeof(out), "%c%lc", in[0], (wint_t)'w');
    if (in[0] == 'a' && out[0] != 'a')
        abort();
}
""".replace("#include <unistd.h>", "#include <unistd.h>\n#include <wchar.h>")), "program")
        result = self.explore("--sym-stdin", "1", "./program")
        self.assertEqual(result["crashes"], [])
        self.assertGreater(result["stats"]["lost_in_calls"], 0)

    def test_heap_as_pm(self):
        self.build(self.write("program.c", """
#include <emmintrin.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
    uint8_t in[2];
    uint64_t *p = aligned_alloc(64, 64);
    if (read(0, in, 2) != 2)
        return 1;
    p[0] = in[0];
    _mm_clflush(p);
    if (in[0] > 200 && in[1] == 7)
        p[1] = 3;
}
"""), "program")
        result = self.explore("--pm-heap", "--sym-stdin", "2", "./program")
        self.assertEqual([(f["kind"], f["sites"][0]["line"], f["confirmed"]) for f in result["findings"]],
                         [("missing-flush", 15, True)])

    def test_stores_of_libc_belong_to_the_caller(self):
        self.build(self.write("program.c", """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
    char in[2], *p = aligned_alloc(64, 64);
    if (read(0, in, 2) != 2)
        return 1;
    if (in[0] == 'p')
        snprintf(p, 64, "%d", in[1]);
}
"""), "program")
        result = self.explore("--pm-heap", "--sym-stdin", "2", "./program")
        self.assertEqual({(f["kind"], f["sites"][0]["line"]) for f in result["findings"]}, {("missing-flush", 11)})
        for frame in result["findings"][0]["sites"][0]["stack"]:
            self.assertEqual(frame["function"], "main")


if __name__ == "__main__":
    unittest.main()
