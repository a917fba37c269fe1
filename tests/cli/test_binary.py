# SPDX-License-Identifier: BSD-3-Clause
"""Programs that were not built with perdure-cc: they do what they did, and what they do to PM is seen."""

import subprocess
import unittest

from support import PROGRAMS, TOOLS, TestCase

BINARY = PROGRAMS.parent / "binary"


class Binary(TestCase):
    def build(self, compiler, source, name, *flags):
        subprocess.run([compiler, "-g", "-w", "-I", PROGRAMS, source, "-o", name, "-pthread", *flags],
                       cwd=self.directory, check=True)

    def native(self, *command):
        return subprocess.run(command, cwd=self.directory, capture_output=True, text=True, check=True).stdout

    def test_does_the_same(self):
        for flags in (("-O0",), ("-O2",), ("-O3", "-mavx2"), ("-O2", "-no-pie"), ("-O2", "-fcf-protection"), ("-Os",)):
            with self.subTest(flags=flags):
                self.build("g++", BINARY / "everything.cc", "everything", *flags)
                expected = self.native("./everything", "pool")
                (self.directory / "pool").unlink()
                result = self.run_tool("run", "--quiet", "--pm", "pool", "./everything", "pool", status=1)
                self.assertEqual(result.stdout, expected)
                (self.directory / "pool").unlink()

    def test_programs_without_pm(self):
        self.write("numbers", "".join("%d\n" % (i * 7919 % 10007) for i in range(5000)))
        for command in (("sort", "numbers"), ("gzip", "-nc", "numbers"), ("perl", "-e", 'print join(",", map { $_ * 2 } 1..999)'),
                        ("ls", "-a")):
            with self.subTest(command=command):
                expected = subprocess.run(command, cwd=self.directory, capture_output=True, check=True).stdout
                ran = subprocess.run([TOOLS / "perdure", "run", "--", *command], cwd=self.directory, capture_output=True)
                self.assertEqual((ran.returncode, ran.stdout), (3, expected))

    def test_callers_without_frame_pointers(self):
        self.write("stack.c", r"""
            #include "pm.h"
            #define NOINLINE __attribute__((noinline, noclone, noipa)) static
            NOINLINE void leaf(long *pm, long i) { pm[i] = i; }
            NOINLINE long middle(long *pm, long i) { leaf(pm, i); return pm[i] + 1; }
            NOINLINE long other(long *pm, long i) { return middle(pm, i) + middle(pm, i + 1); }
            int main(int argc, char **argv)
            {
                long *pm = pm_map(argv), sum = middle(pm, 100);
                for (long i = 0; i < 60; i++)
                    sum += other(pm, i);
                return sum == argc;
            }""")
        self.build("gcc", "stack.c", "stack", "-O2", "-fomit-frame-pointer")
        self.run_tool("run", "--pm", "pool", "--json", "result.json", "./stack", "pool", status=1)
        ways = {tuple(frame["function"] for frame in f["sites"][0]["stack"]) for f in self.load()["findings"]}
        self.assertEqual(ways, {("leaf", "middle", "main"), ("leaf", "middle", "other", "main")})

    def test_static_program(self):
        self.write("empty.c", "int main(void) { return 0; }")
        self.build("gcc", "empty.c", "empty", "-static")
        self.assertIn("static", self.run_tool("run", "./empty", status=3).stderr)


if __name__ == "__main__":
    unittest.main()
