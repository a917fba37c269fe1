# SPDX-License-Identifier: BSD-3-Clause
"""perdure-cc as a drop-in for clang."""

import os
import subprocess
import unittest

from support import PROGRAMS, TOOLS, TestCase

HELLO = '#include "part.h"\n#include <stdio.h>\nint main(void) { printf("%d\\n", part()); return 0; }\n'


class Driver(TestCase):
    def setUp(self):
        super().setUp()
        self.write("main.c", HELLO)
        self.write("part.h", "int part(void);\n")
        self.write("part.c", '#include "part.h"\nint part(void) { return 5; }\n')

    def output(self, program="./a.out"):
        return subprocess.run([program], cwd=self.directory, capture_output=True, text=True,
                              check=True).stdout

    def test_compile_and_link_several(self):
        for level in ("-O0", "-O1", "-O2", "-O3", "-Os", "-Og"):
            self.compile(level, "main.c", "part.c")
            self.assertEqual(self.output(), "5\n")

    def test_objects_archive_shared(self):
        self.compile("-c", "main.c", "part.c")
        subprocess.run(["ar", "rc", "libpart.a", "part.o"], cwd=self.directory, check=True)
        self.compile("main.o", "libpart.a", "-o", "static")
        self.assertEqual(self.output("./static"), "5\n")
        self.compile("-shared", "-fPIC", "part.c", "-o", "libpart.so", "-Wl,-z,defs")
        self.compile("main.c", "-L.", "-lpart", "-Wl,-rpath,.", "-o", "dynamic")
        os.remove(self.directory / "libpart.a")
        self.assertEqual(self.output("./dynamic"), "5\n")
        self.compile("-r", "main.o", "part.o", "-o", "both.o")
        self.compile("both.o", "-o", "both")
        self.assertEqual(self.output("./both"), "5\n")

    def test_other_outputs(self):
        self.assertIn("int part(void)", self.compile("-E", "main.c", silent=False).stdout)
        self.assertIn("main.o: main.c part.h", self.compile("-MM", "main.c", silent=False).stdout)
        self.compile("-S", "part.c")
        self.assertIn("part:", (self.directory / "part.s").read_text())
        self.compile("-c", "part.s", "-o", "from_s.o")
        self.compile("-MD", "-MF", "x.d", "-MT", "target", "-c", "main.c")
        self.assertIn("target: main.c", (self.directory / "x.d").read_text())
        self.compile("-MMD", "-c", "main.c", "-o", "sub.o")
        self.assertIn("part.h", (self.directory / "sub.d").read_text())
        self.compile("-fsyntax-only", "main.c")

    def test_input_forms(self):
        self.write("arguments", "-O1 main.c\n'part.c' -o \"with space\"")
        self.compile("@arguments")
        self.assertEqual(self.output("./with space"), "5\n")
        self.write("odd.txt", "int part(void) { return 5; }")
        self.compile("main.c", "-x", "c", "odd.txt", "-o", "x")
        self.assertEqual(self.output("./x"), "5\n")
        self.run_tool("-x", "c", "-c", "-", "-o", "stdin.o", tool="perdure-cc",
                      input="int part(void) { return 5; }")
        self.compile("main.c", "stdin.o")
        self.assertEqual(self.output(), "5\n")

    def test_link_time_optimisation_is_tolerated(self):
        self.compile("-flto", "-O2", "-c", "part.c")
        self.compile("-flto=auto", "-ffat-lto-objects", "-O2", "main.c", "part.o")
        self.assertEqual(self.output(), "5\n")

    def test_cxx(self):
        self.write("m.cc", """
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>
template <typename T> T twice(T x) { return x + x; }
thread_local std::string name = "tls";
struct guard { ~guard() { std::cout << "unwound "; } };
int main() {
    std::vector<int> v{1, 2, 3};
    try { guard g; v.at(7) = 1; } catch (const std::out_of_range &) { v[0] = twice(21); }
    std::cout << name << v[0] << std::endl;
}
""")
        for level in ("-O0", "-O2"):
            self.compile(level, "m.cc", tool="perdure-c++")
            self.assertEqual(self.output(), "unwound tls42\n")
        self.run_tool("c++", "m.cc", "-o", "by_subcommand")
        self.assertEqual(self.output("./by_subcommand"), "unwound tls42\n")

    def test_errors(self):
        self.write("bad.c", "int main(void) { return x; }\n")
        result = self.compile("bad.c", status=1)
        self.assertIn("undeclared identifier 'x'", result.stderr)
        self.assertIn("no input files", self.compile(status=1).stderr)
        self.assertIn("-static is not possible", self.compile("-static", "main.c", "part.c", status=1).stderr)
        self.assertIn("clang version", self.compile("--version", silent=False).stdout)

    def test_old_c_is_accepted_with_a_note(self):
        self.write("old.c", "static x; int main() { return undeclared(5) + x; }\n")
        result = self.compile("-c", "old.c", silent=False)
        self.assertIn("-Wno-error=implicit-function-declaration", result.stderr)
        self.assertIn("-Wno-error=implicit-int", result.stderr)
        self.assertNotIn("error:", result.stderr)
        self.assertTrue((self.directory / "old.o").exists())
        # Where gcc would fail as well, so do we, and say what would help.
        result = self.compile("-c", "-Werror", "old.c", status=1)
        self.assertIn("helps to add: -Wno-error=implicit-function-declaration", result.stderr)
        self.write("worse.c", "int main() { return undeclared(5) + y; }\n")
        self.assertIn("undeclared identifier 'y'", self.compile("-c", "worse.c", status=1).stderr)
        self.write("nested.c", "int f(int x) { int g(int y) { return x + y; } return g(1); }\n")
        self.assertIn("nested functions", self.compile("-c", "nested.c", status=1).stderr)

    def test_old_cxx_is_accepted_with_a_note(self):
        self.write("old.cc", "template <class T> struct list { int a; void f(list &l) { a = l.nothing(); } };\n"
                             "int main() { list<int> l; register int i = 3; long n = 5; int a[] = { (int)i, n };\n"
                             "l.a = a[1]; return l.a - 5; }\n")
        result = self.compile("-std=c++17", "old.cc", tool="perdure-c++", silent=False)
        for flag in "-Wno-c++11-narrowing", "-Wno-register", "-fdelayed-template-parsing":
            self.assertIn("for clang alone add: " + flag, result.stderr)
        self.assertEqual(subprocess.run(["./a.out"], cwd=self.directory).returncode, 0)
        self.compile("-std=c++17", "-Werror", "old.cc", tool="perdure-c++", status=1)
        self.write("unused.cc", "template <class T> struct list { void f(list &l) { l.nothing(); } };\nint main() {}\n")
        self.compile("-Werror", "unused.cc", tool="perdure-c++", silent=False)
        self.write("used.cc", "template <class T> struct list { void f(list &l) { l.nothing(); } };\n"
                              "int main() { list<int> l; l.f(l); }\n")
        self.assertIn("no member named 'nothing'", self.compile("used.cc", tool="perdure-c++", status=1).stderr)

    def test_inline_functions_of_c99(self):
        self.write("inline.c", "inline int f(int x) { return x + 1; }\nint main(void) { return f(4); }\n")
        self.compile("-O1", "inline.c")
        self.assertEqual(subprocess.run(["./a.out"], cwd=self.directory).returncode, 5)

    def test_sanitizers_together(self):
        self.write("asan.c", "#include <stdlib.h>\nint main(int c, char **v) "
                             "{ char *p = malloc(3); p[c + 2] = 1; return p[0]; }\n")
        self.compile("-fsanitize=address", "asan.c")
        result = subprocess.run(["./a.out"], cwd=self.directory, capture_output=True, text=True,
                                env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})
        self.assertIn("heap-buffer-overflow", result.stderr)

    def test_cmake_project(self):
        self.write("CMakeLists.txt", "cmake_minimum_required(VERSION 3.18)\nproject(p C CXX)\n"
                                     "set(CMAKE_INTERPROCEDURAL_OPTIMIZATION OFF)\n"
                                     "find_package(Threads REQUIRED)\n"
                                     "add_library(part part.c)\nadd_executable(prog main.c)\n"
                                     "target_link_libraries(prog part Threads::Threads)\n")
        subprocess.run(["cmake", "-S", ".", "-B", "b", "-DCMAKE_C_COMPILER=%s" % (TOOLS / "perdure-cc"),
                        "-DCMAKE_CXX_COMPILER=%s" % (TOOLS / "perdure-c++")],
                       cwd=self.directory, check=True, capture_output=True)
        subprocess.run(["cmake", "--build", "b"], cwd=self.directory, check=True, capture_output=True)
        self.assertEqual(self.output("b/prog"), "5\n")


class LargeFunctions(TestCase):
    def test_places_are_right(self):
        """Tests are not inlined into very large functions; places must be as always."""
        lines = ["#include \"pm.h\"", "int main(int argc, char **argv)", "{", "long *p = pm_map(argv);"]
        lines += ["p[%d] = p[%d] + argc;" % (i % 64, (i * 7) % 64) for i in range(2000)]
        lines += ["for (int i = 0; i < 64; i += 8)", "CLWB(p + i);", "SFENCE();",
                  "p[100] = argc; /* lost */", "return 0;", "}"]
        self.write("large.c", "\n".join(lines) + "\n")
        for level in ("-O0", "-O2"):
            self.compile(level, "-I", PROGRAMS, "large.c", "-o", "large")
            self.run_tool("run", "--pm", "pool", "--json", "result.json", "./large", "pool", status=1)
            findings = self.load()["findings"]
            self.assertEqual([(f["kind"], f["sites"][0]["line"]) for f in findings],
                             [("missing-flush", 2008)])
            self.assertEqual([f["function"] for f in findings[0]["sites"][0]["stack"]], ["main"])


if __name__ == "__main__":
    unittest.main()
