# SPDX-License-Identifier: BSD-3-Clause
"""Library models: the user's own, in the program, in a prebuilt and in an instrumented library."""

import subprocess
import unittest

from support import PROGRAMS, TestCase

# A library with a persist function and transactions of its own.
LIBRARY = r"""
#include "pm.h"
#include "library.h"
static long depth;
void my_persist(const void *p, unsigned long n)
{
    for (unsigned long i = 0; i < n; i += 64)
        CLWB((const char *)p + i);
    SFENCE();
}
int my_begin(struct my_pool *pool) { depth++; return pool ? 0 : -1; }
void my_log(struct my_range range) { __asm__ volatile("" :: "r"(range.start)); }
void my_commit(void) { SFENCE(); }
void my_end(void) { depth--; }
void *my_start(struct my_range range) { return range.start; }
unsigned long my_size(struct my_range range) { return range.size; }
void my_store(long *p, long value) { *p = value; }
long my_sum(long a, double b, long c, long d, long e, long f, long g, long h, double i, ...)
{
    __builtin_va_list rest;
    long sum;
    __builtin_va_start(rest, i);
    sum = a + b + c + d + e + f + g + h + i + __builtin_va_arg(rest, long);
    __builtin_va_end(rest);
    return sum;
}
"""

HEADER = r"""
struct my_pool;
struct my_range { void *start; unsigned long size; };
void my_persist(const void *p, unsigned long n);
int my_begin(struct my_pool *pool);
void my_log(struct my_range range);
void my_commit(void);
void my_end(void);
void my_store(long *p, long value);
long my_sum(long a, double b, long c, long d, long e, long f, long g, long h, double i, ...);
"""

PROGRAM = r"""
#include "pm.h"
#include "library.h"
#include <dlfcn.h>
static void (*persist)(const void *, unsigned long) = my_persist;
int main(int argc, char **argv)
{
    long *p = pm_map(argv);
    p[0] = argc;
    my_persist(p, 8);
    p[8] = argc;
    persist(p + 8, 8);
    if (my_begin((struct my_pool *)p))
        return 1;
    my_log((struct my_range){ p + 16, 16 });
    p[16] = p[17] = argc;
    p[18] = argc; /* not logged */
    my_commit();
    my_end();
    p[24] = argc; /* after the transaction */
    my_persist(p + 24, 8);
    my_store(p + 32, argc); /* by the library */
    persist = (void (*)(const void *, unsigned long))dlsym(RTLD_DEFAULT, "my_persist");
    if (persist) {
        p[40] = argc;
        persist(p + 40, 8);
    }
    return my_sum(1, 2, 3, 4, 5, 6, 7, 8, 9, 10l) == 55 ? 0 : 2;
}
"""

MODEL = """
library {glob}
object range 2 address my_start size my_size
my_persist(p, n)
    persist p n
int my_begin(pool)
    tx-begin pool if result == 0
my_log(range r)
    tx-add r size(r)
my_commit()
    tx-commit
my_end()
    tx-end
my_sum(a, float b, c, d, e, f, g, h, float i, ...)
    order
"""

LIB = PROGRAM.splitlines()
NOT_LOGGED = [i + 1 for i, line in enumerate(LIB) if "not logged" in line][0]
AFTER = [i + 1 for i, line in enumerate(LIB) if "after the" in line][0]


class Models(TestCase):
    def setUp(self):
        super().setUp()
        self.write("library.h", HEADER)
        self.write("library.c", LIBRARY)
        self.write("main.c", PROGRAM)

    def model(self, glob):
        self.write("my.model", MODEL.format(glob=glob))

    def run_main(self, *options, status):
        self.run_tool("run", "--pm", "pool", "--json", "result.json", *options, "./main", "pool",
                      status=status)
        result = self.load()
        self.assertEqual(result["target"]["exit"], 0)
        return {(f["kind"], f["sites"][0]["file"], f["sites"][0]["line"])
                for f in result["findings"]}, result["limits"]

    def shared(self, compiler):
        if compiler == "gcc":
            subprocess.run(["gcc", "-O1", "-g", "-shared", "-fPIC", "-I", PROGRAMS, "library.c", "-o",
                            "libmy.so"], cwd=self.directory, check=True)
        else:
            self.compile("-O1", "-g", "-shared", "-fPIC", "-I", PROGRAMS, "library.c", "-o", "libmy.so")
        self.compile("-O1", "-g", "-I", PROGRAMS, "main.c", "-o", "main", "./libmy.so")

    def test_functions_of_the_program(self):
        for level in ("-O0", "-O2"):
            self.compile(level, "-I", PROGRAMS, "main.c", "library.c", "-o", "main")
            self.model("*")
            without, _ = self.run_main(status=1)
            self.assertEqual({kind for kind, _, _ in without}, {"missing-flush"})
            found, limits = self.run_main("--lib-model", "my.model", status=1)
            self.assertIn(("store-outside-tx", "main.c", NOT_LOGGED), found)
            self.assertNotIn(("store-outside-tx", "main.c", AFTER), found)
            self.assertEqual(len([f for f in found if f[0] == "store-outside-tx"]), 1)
            self.assertEqual(limits, [])

    def test_prebuilt_library(self):
        self.shared("gcc")
        self.model("libmy.so")
        found, _ = self.run_main("--no-patch", "libmy*", status=1)
        self.assertGreater(len(found), 3)  # nobody flushes, as far as one can see
        found, _ = self.run_main("--no-patch", "libmy*", "--lib-model", "my.model", status=1)
        self.assertEqual(found, {("store-outside-tx", "main.c", NOT_LOGGED)})

    def test_patched_library(self):
        self.shared("gcc")
        self.model("libmy.so")
        found, limits = self.run_main("--lib-model", "my.model", status=1)
        self.assertEqual({kind for kind, file, _ in found if file != "main.c"}, {"missing-flush"})
        self.assertIn(("store-outside-tx", "main.c", NOT_LOGGED), found)
        self.assertEqual(limits, [])
        self.write("my.model", MODEL.format(glob="libmy.so trusted"))
        found, _ = self.run_main("--lib-model", "my.model", status=1)
        self.assertEqual({file for _, file, _ in found}, {"main.c"})  # its commit does not flush
        judged, _ = self.run_main("--lib-model", "my.model", "--trust-lib", "none", status=1)
        self.assertEqual({file for _, file, _ in judged}, {"main.c", "library.c"})

    def test_instrumented_library(self):
        self.shared("perdure-cc")
        self.model("libmy.so")
        found, _ = self.run_main("--lib-model", "my.model", status=1)
        by_library = [f for f in found if f[1] == "library.c"]
        self.assertEqual({kind for kind, _, _ in by_library}, {"missing-flush"})
        self.assertIn(("store-outside-tx", "main.c", NOT_LOGGED), found)

    def test_trusted_library(self):
        self.shared("perdure-cc")
        self.model("libmy.so")
        found, _ = self.run_main("--lib-model", "my.model", "--trust-lib", "libmy*", status=1)
        self.assertEqual(found, {("store-outside-tx", "main.c", NOT_LOGGED)})

    def test_model_of_another_library(self):
        self.shared("gcc")
        self.model("libother.so*")
        found, limits = self.run_main("--lib-model", "my.model", status=1)
        self.assertNotIn("store-outside-tx", {kind for kind, _, _ in found})
        self.assertIn("no function of library libother.so*", " ".join(limits))

    def test_unknown_library_that_writes(self):
        self.write("library.c", LIBRARY.replace("*p = value;", "memcpy(p, &value, argument(sizeof(value)));")
                   .replace("void my_store", "static unsigned long (*volatile argument)(unsigned long) = "
                            "(void *)my_identity;\nvoid my_store")
                   .replace("static long depth;", "static long depth;\n"
                            "static unsigned long my_identity(unsigned long n) { return n; }"))
        self.shared("gcc")
        _, limits = self.run_main("--no-patch", "libmy*", status=1)
        self.assertIn("libmy.so wrote to PM and was not built with perdure-cc", " ".join(limits))

    def test_function_that_is_not_there(self):
        self.shared("gcc")
        self.write("my.model", MODEL.format(glob="libmy.so") + "my_missing(p)\n    flush p 1\n")
        _, limits = self.run_main("--lib-model", "my.model", status=1)
        self.assertEqual(len(limits), 1)
        self.assertIn("my_missing is not in the program", limits[0])

    def test_calls_inside_an_instrumented_library(self):
        self.write("library.c", LIBRARY.replace("int my_begin", "__attribute__((noinline)) int my_begin") +
                   "int my_enter(struct my_pool *pool) { return my_begin(pool); }\n")
        self.write("library.h", HEADER + "int my_enter(struct my_pool *pool);\n")
        self.write("main.c", PROGRAM.replace("if (my_begin(", "if (my_enter("))
        self.shared("perdure-cc")
        self.model("libmy.so")
        found, _ = self.run_main("--lib-model", "my.model", status=1)
        self.assertIn(("store-outside-tx", "main.c", NOT_LOGGED), found)
        lines = {line for kind, file, line in found if file == "library.c"}
        self.assertEqual(len(lines), 1)  # where my_store stores

    def test_any_number_of_arguments(self):
        self.write("main.c", r"""
#include "pm.h"
#include <stdarg.h>
#include <pthread.h>
long my_total(int count, ...);
int main(int argc, char **argv)
{
    long *p = pm_map(argv);
    p[0] = argc;
    PERSIST(p);
    return my_total(40, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24,
                    25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40) == 820 ? 0 : 1;
}
""")
        self.write("library.c", r"""
#include <stdarg.h>
long my_total(int count, ...)
{
    va_list list;
    long sum = 0;
    va_start(list, count);
    while (count--)
        sum += va_arg(list, int);
    va_end(list);
    return sum;
}
""")
        self.write("my.model", "library libmy.so\nmy_total(int count, ...)\n\torder\n\tcall\n\tlock result\n")
        self.shared("gcc")
        self.run_main("--lib-model", "my.model", "--trace", "trace", status=0)
        self.assertIn("lock 0x334", (self.directory / "trace").read_text())

    def test_library_that_is_loaded_late(self):
        self.write("main.c", r"""
#include "pm.h"
#include <dlfcn.h>
int main(int argc, char **argv)
{
    long *p = pm_map(argv);
    for (int i = 0; i < 3; i++) {
        void *library = dlopen("libmy.so", RTLD_NOW);
        void (*persist)(const void *, unsigned long) = dlsym(library, "my_persist");
        p[0] = argc + i;
        persist(p, 8);
        dlclose(library);
    }
    return 0;
}
""")
        self.model("libmy.so")
        subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-I", PROGRAMS, "library.c", "-o", "libmy.so"],
                       cwd=self.directory, check=True)
        self.compile("-O1", "-I", PROGRAMS, "main.c", "-o", "main", "-Wl,-rpath,$ORIGIN")
        self.run_main("--no-patch", "lib*", status=1)
        found, _ = self.run_main("--no-patch", "lib*", "--lib-model", "my.model", status=0)
        self.assertEqual(found, set())
        found, _ = self.run_main(status=0)
        self.assertEqual(found, set())

    def test_plugin_that_is_loaded_again(self):
        self.write("main.c", r"""
#include "pm.h"
#include <dlfcn.h>
int main(int argc, char **argv)
{
    long *p = pm_map(argv);
    for (int i = 0; i < 3; i++) {
        void *plugin = dlopen("./plugin.so", RTLD_NOW);
        void (*save)(void *) = (void (*)(void *))dlsym(plugin, "save");
        p[8 * i] = argc;
        save(p + 8 * i);
        dlclose(plugin);
    }
    return 0;
}
""")
        self.write("plugin.c", "#include <libpmem.h>\nvoid save(void *p) { pmem_persist(p, 8); }\n")
        subprocess.run(["gcc", "-shared", "-fPIC", "plugin.c", "-o", "plugin.so", "-lpmem"],
                       cwd=self.directory, check=True)
        self.compile("-O1", "-I", PROGRAMS, "main.c", "-o", "main", "-lpmem")
        found, _ = self.run_main(status=0)
        self.assertEqual(found, set())

    def test_exceptions_pass_through(self):
        self.write("main.cc", r"""
#include "pm.h"
#include <stdexcept>
void my_throw(int count, ...);
int main(int argc, char **argv)
{
    long *p = (long *)pm_map(argv);
    p[0] = argc;
    PERSIST(p);
    try {
        my_throw(3, 1, 2, 3);
    } catch (const std::runtime_error &) {
        return 0;
    }
    return 1;
}
""")
        self.write("library.cc", "#include <stdexcept>\nvoid my_throw(int, ...) { throw std::runtime_error(\"x\"); }\n")
        self.write("my.model", "library libmy.so\n_Z8my_throwiz(int count, ...)\n\tcall\n\torder\n")
        subprocess.run(["g++", "-shared", "-fPIC", "library.cc", "-o", "libmy.so"], cwd=self.directory,
                       check=True)
        self.compile("-O1", "-I", PROGRAMS, "main.cc", "-o", "main", "./libmy.so", tool="perdure-c++")
        self.run_main("--lib-model", "my.model", status=0)

    def test_interposers_come_first(self):
        self.shared("gcc")
        self.model("libmy.so")
        for name in "ab":
            self.write(name + ".c", r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
void my_persist(const void *p, unsigned long n)
{
    void (*next)(const void *, unsigned long) = (void (*)(const void *, unsigned long))dlsym(RTLD_NEXT, "my_persist");
    if (write(1, "%s", 1) == 1)
        next(p, n);
}
""" % name)
            subprocess.run(["gcc", "-shared", "-fPIC", name + ".c", "-o", name + ".so"],
                           cwd=self.directory, check=True)
        self.compile("-O1", "-g", "-I", PROGRAMS, "main.c", "-o", "main", "./a.so", "./b.so", "./libmy.so")
        result = self.run_tool("run", "--pm", "pool", "--json", "result.json", "--lib-model", "my.model",
                               "--no-patch", "lib*", "./main", "pool", status=1)
        self.assertEqual(result.stdout, "ab" * 4)
        self.assertEqual({f["kind"] for f in self.load()["findings"]}, {"store-outside-tx"})

    def test_wrong_model(self):
        self.write("my.model", "library x\nmy_persist(p)\n\tflush p\n")
        self.compile("-O1", "-I", PROGRAMS, "main.c", "library.c", "-o", "main")
        result = self.run_tool("run", "--lib-model", "my.model", "./main", "pool", status=2)
        self.assertEqual(result.stderr, "perdure: my.model:3: too little: flush ADDRESS SIZE\n")
        result = self.run_tool("run", "--lib-model", "none.model", "./main", "pool", status=2)
        self.assertIn("none.model: No such file", result.stderr)
        self.assertFalse((self.directory / "pool").exists())


if __name__ == "__main__":
    unittest.main()
