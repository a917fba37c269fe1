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

    def test_recovery_that_dies(self):
        self.write("list.c", r"""
            #include "pm.h"
            struct pm { _Alignas(64) long *pointer; _Alignas(64) long ready; long value; };
            __attribute__((noinline, noipa)) static long follow(struct pm *pm) { return *pm->pointer; }
            int main(int argc, char **argv)
            {
                struct pm *pm = pm_map(argv);
                if (__atomic_load_n(&pm->ready, __ATOMIC_ACQUIRE))
                    return follow(pm) == argc + 7;
                pm->pointer = &pm->value;
                __atomic_store_n(&pm->ready, 1, __ATOMIC_RELEASE);
                PERSIST(&pm->ready);
                PERSIST(&pm->pointer);
                return 0;
            }""")
        for command in ("check", "model"):
            for level in ("-O0", "-O2"):
                self.build("gcc", "list.c", "list", level)
                self.run_tool(command, "--pm", "pool", "--json", "result.json", "./list", "pool", status=1)
                finding, = (f for f in self.load()["findings"] if f["kind"] == "crash-symptom")
                self.assertIn("SIGSEGV", finding["message"])
                self.assertEqual([(s["function"], s["line"]) for s in finding["sites"]], [("follow", 4), ("main", 10)])
                self.assertTrue(finding["witness"]["minimal"])

    def test_library_that_comes_later(self):
        self.write("fill.c", "void fill(long *p, long n) { for (long i = 0; i < n; i++) p[i] = i; }")
        self.write("opens.c", r"""
            #include "pm.h"
            #include <dlfcn.h>
            int main(int argc, char **argv)
            {
                long *pm = pm_map(argv);
                for (int i = 0; i < 2; i++) {
                    void *library = dlopen("./libfill.so", RTLD_NOW);
                    ((void (*)(long *, long))dlsym(library, "fill"))(pm + 8 * i, 8);
                    dlclose(library);
                }
                return argc > 99;
            }""")
        self.build("gcc", "fill.c", "libfill.so", "-O2", "-shared", "-fPIC")
        self.build("gcc", "opens.c", "opens")
        self.run_tool("run", "--pm", "pool", "--json", "result.json", "./opens", "pool", status=1)
        finding, = self.load()["findings"]
        self.assertEqual((finding["sites"][0]["function"], finding["count"]), ("fill", 2))
        self.run_tool("run", "--no-patch", "libfill*", "--pm", "pool", "./opens", "pool", status=None)

    def test_static_program(self):
        self.write("empty.c", "int main(void) { return 0; }")
        self.build("gcc", "empty.c", "empty", "-static")
        self.assertIn("static", self.run_tool("run", "./empty", status=3).stderr)


if __name__ == "__main__":
    unittest.main()
