# SPDX-License-Identifier: BSD-3-Clause
"""Threads as fibers: programs do the same as with real threads; what a schedule finds is found again."""

import subprocess
import unittest

from support import PROGRAMS, TestCase

THREADS = PROGRAMS.parent / "threads"


class Conformance(TestCase):
    """Each program of tests/threads prints the same natively and under every policy."""

    POLICIES = [[], ["--schedule", "random", "--seed", "7"], ["--schedule", "pct", "--seed", "5"],
                ["--schedule", "all", "--preemptions", "0", "--schedules", "2"]]

    def compare(self, source, *arguments):
        self.compile(*arguments, "-g", THREADS / source, "-o", "program", "-pthread",
                     tool="perdure-c++" if source.endswith("cpp") else "perdure-cc")
        native = subprocess.run(["./program"], cwd=self.directory, capture_output=True, text=True,
                                timeout=60)
        self.assertEqual(native.returncode, 0)
        (self.directory / "pool").unlink()
        for policy in self.POLICIES:
            with self.subTest(policy=policy):
                result = self.run_tool("check", "--pm", "pool", "--max-crash-points", 2, "--json",
                                       "result.json", *policy, "./program")
                self.assertEqual(result.stdout, native.stdout)
                self.assertEqual(self.load()["findings"], [])

    def test_mutexes(self):
        self.compare("mutexes.c")

    def test_conditions(self):
        self.compare("conditions.c")

    def test_locks(self):
        self.compare("locks.c", "-O2")

    def test_ends(self):
        self.compare("ends.c")

    def test_c11(self):
        self.compare("c11.c", "-O1")

    def test_spinning(self):
        self.compare("spinning.c", "-O2")

    def test_blocking(self):
        self.compare("blocking.c")

    def test_forking(self):
        self.compare("forking.c", "-O1")

    def test_many(self):
        self.compare("many.c")

    def test_signals(self):
        self.compare("signals.c", "-O1")

    def test_standard(self):
        self.compare("standard.cpp", "-std=c++20", "-O1")


LITMUS = r"""
#include "pm.h"
#include <immintrin.h>
#include <perdure/perdure.h>
#include <pthread.h>
#include <stdatomic.h>
static atomic_int dram[8], out[4], *pm;
static int plain;
#define D(i) dram[i]
#define P(i) pm[16 * (i)]
#define W(x, v) atomic_store_explicit(&(x), v, memory_order_relaxed)
#define R(x) atomic_load_explicit(&(x), memory_order_relaxed)
%s
static void *(*const function[])(void *) = { %s };
int main(int argc, char **argv)
{
    enum { THREADS = sizeof(function) / sizeof(*function) };
    pthread_t thread[THREADS];
    char text[8];
    pm = pm_map(argv);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, function[i], NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    snprintf(text, sizeof(text), "%%d%%d%%d%%d", out[0], out[1], out[2], out[3]);
    perdure_found(text);
    return argc == 0 || plain == 77;
}
"""


class Litmus(TestCase):
    """x86-TSO: exactly the outcomes that are possible, whether in PM or in ordinary memory."""

    PLACES = [("P(0)", "P(1)"), ("P(0)", "D(1)"), ("D(0)", "D(1)")]

    def outcomes(self, threads, preemptions=2):
        code = "".join("static void *t%d(void *unused) { %s return unused; }\n" % (i, t)
                       for i, t in enumerate(threads))
        self.write("litmus.c", LITMUS % (code, ", ".join("t%d" % i for i in range(len(threads)))))
        self.compile("-O1", "-mclwb", "-I", PROGRAMS, "litmus.c", "-o", "litmus", "-pthread")
        self.run_tool("check", "--pm", "pool", "--schedule", "all", "--preemptions", preemptions,
                      "--checker", "true", "--max-crash-points", 1, "--json", "result.json",
                      "./litmus", "pool", status=1)
        return {f["message"] for f in self.load()["findings"] if f["kind"] == "custom"}

    def two(self, first, second, allowed):
        for x, y in self.PLACES:
            with self.subTest(x=x, y=y, code=first):
                threads = [t.replace("X", x).replace("Y", y) for t in (first, second)]
                self.assertEqual(self.outcomes(threads), {o + "00" for o in allowed})

    def store_buffering(self, between, allowed):
        self.two("W(X, 1); %s int r = R(Y); W(out[0], r);" % between,
                 "W(Y, 1); %s int r = R(X); W(out[1], r);" % between, allowed)

    def test_store_buffering(self):
        self.store_buffering("", {"00", "01", "10", "11"})

    def test_store_buffering_with_fences(self):
        self.store_buffering("_mm_sfence();", {"00", "01", "10", "11"})
        self.store_buffering("_mm_mfence();", {"01", "10", "11"})
        self.store_buffering("atomic_fetch_add(&dram[5], 1);", {"01", "10", "11"})

    def test_sequentially_consistent_stores(self):
        self.two("atomic_store(&X, 1); int r = atomic_load(&Y); W(out[0], r);",
                 "atomic_store(&Y, 1); int r = atomic_load(&X); W(out[1], r);", {"01", "10", "11"})

    def test_plain_stores_cannot_be_overtaken(self):
        """What is not hooked is seen at once, so what came before it is, too."""
        self.store_buffering("plain++;", {"01", "10", "11"})

    def test_message_passing(self):
        self.two("W(X, 1); W(Y, 1);", "int y = R(Y); int x = R(X); W(out[0], y); W(out[1], x);",
                 {"00", "01", "11"})

    def test_load_buffering(self):
        self.two("int r = R(Y); W(X, 1); W(out[0], r);", "int r = R(X); W(Y, 1); W(out[1], r);",
                 {"00", "01", "10"})

    def test_independent_readers(self):
        allowed = {"{:04b}".format(i) for i in range(16)} - {"1010"}
        self.assertEqual(self.outcomes(["W(P(0), 1);", "W(D(1), 1);",
                                        "int a = R(P(0)); int b = R(D(1)); W(out[0], a); W(out[1], b);",
                                        "int a = R(D(1)); int b = R(P(0)); W(out[2], a); W(out[3], b);"],
                                       preemptions=1), allowed)


# The reader acts on what the writer has not persisted yet: only if it comes between two neighbouring
# steps of the writer.
UNLUCKY = r"""
#include "pm.h"
#include <pthread.h>
#include <stdatomic.h>
struct pm { _Alignas(64) _Atomic uint64_t data; _Alignas(64) _Atomic uint64_t seen; };
static struct pm *pm;
static atomic_int step;
static void work(int n) { for (int i = 0; i < n; i++) atomic_load_explicit(&step, memory_order_relaxed); }
static void *writer(void *unused)
{
    work(5);
    atomic_store_explicit(&pm->data, 1, memory_order_relaxed);
    atomic_store_explicit(&step, 1, memory_order_release);
    CLWB(&pm->data);
    SFENCE();
    atomic_store_explicit(&step, 2, memory_order_release);
    work(5);
    return unused;
}
static void *reader(void *unused)
{
    work(5);
    if (atomic_load_explicit(&step, memory_order_acquire) == 1) {
        atomic_store_explicit(&pm->seen, 1, memory_order_relaxed);
        CLWB(&pm->seen);
        SFENCE();
    }
    work(5);
    return unused;
}
int main(int argc, char **argv)
{
    pthread_t thread[2];
    pm = pm_map(argv);
    if (argc > 2) {
        uint64_t data = atomic_load(&pm->data);
        if (atomic_load(&pm->seen) && !data)
            abort();
        return 0;
    }
    pthread_create(&thread[0], NULL, writer, NULL);
    pthread_create(&thread[1], NULL, reader, NULL);
    pthread_join(thread[0], NULL);
    pthread_join(thread[1], NULL);
    return 0;
}
"""


class Schedules(TestCase):
    def setUp(self):
        super().setUp()
        self.write("unlucky.c", UNLUCKY)
        self.compile("-O1", "-I", PROGRAMS, "unlucky.c", "-o", "unlucky", "-pthread")

    def check(self, *options, status):
        self.run_tool("check", "--pm", "pool", "--json", "result.json", "--recover",
                      "./unlucky pool recover", *options, "./unlucky", "pool", status=status)
        return self.load()

    def symptoms(self, result):
        return [f for f in result["findings"] if f["kind"] == "crash-symptom"]

    def test_default_does_not_meet_it(self):
        result = self.check(status=0)
        self.assertEqual(result["findings"], [])
        self.assertTrue(result["complete"])

    def test_found_within_the_bound(self):
        """A bug of depth 2 among 3 threads: once in 3 k schedules of that depth, and depths take turns."""
        steps = self.check("--schedule", "random", status=None)["stats"]["schedule_points"]
        self.assertGreater(steps, 20)
        result = self.check("--schedule", "pct", "--schedules", 3 * 3 * steps, status=1)
        self.assertTrue(self.symptoms(result))

    def test_found_again(self):
        for policy in (["--schedule", "pct", "--schedules", "400"], ["--schedule", "random", "--schedules", "400"],
                       ["--schedule", "all"]):
            with self.subTest(policy=policy):
                found = self.symptoms(self.check(*policy, status=1))[0]
                again = ["--schedule", *found["witness"]["schedule"].split()]
                for _ in range(34):
                    same = self.symptoms(self.check(*again, status=1))[0]
                    for key in ("message", "sites", "crash_point", "fingerprint"):
                        self.assertEqual(same[key], found[key])

    def test_all_is_exhaustive(self):
        few = self.check("--schedule", "all", "--preemptions", 1, status=1)
        self.assertTrue(few["complete"], few["limits"])
        part = self.check("--schedule", "all", "--preemptions", 1, "--schedules", 3, status=None)
        self.assertEqual(part["stats"]["schedules"], 3)
        self.assertIn("there are more", " ".join(part["limits"]))
        self.assertFalse(part["complete"])

    def test_bad_schedules(self):
        for word in ("fair", "script:1;2", "script:x", "all:1"):
            self.assertIn("--schedule", self.run_tool("check", "--schedule", word, "./unlucky", status=2).stderr)

    def test_the_same_each_time(self):
        results = [self.check("--schedule", "random", "--schedules", 5, status=None) for _ in range(2)]
        for result in results:
            for key in ("seconds", "session_bytes", "executions", "memo_hits", "guard_executions"):
                del result["stats"][key]  # who is first among workers is chance
        self.assertEqual(*results)


class Natively(TestCase):
    """What cannot be a fiber."""

    def test_clone(self):
        self.write("clone.c", r"""
            #include "pm.h"
            #include <sched.h>
            #include <sys/wait.h>
            static char stack[65536];
            static int child(void *p) { return p == NULL; }
            int main(int argc, char **argv)
            {
                uint64_t *p = pm_map(argv);
                int pid = clone(child, stack + sizeof(stack), CLONE_VM | SIGCHLD, p);
                waitpid(pid, NULL, 0);
                p[0] = argc;
                PERSIST(p);
                return 0;
            }""")
        self.compile("-O1", "-I", PROGRAMS, "-D_GNU_SOURCE", "-include", "signal.h", "clone.c", "-o", "clone")
        self.run_tool("check", "--pm", "pool", "--json", "result.json", "./clone", "pool")
        self.assertIn("clone", " ".join(self.load()["limits"]))

    def test_generated_code(self):
        self.write("generates.c", r"""
            #include "pm.h"
            #include <pthread.h>
            static void *work(void *unused) { return unused; }
            int main(int argc, char **argv)
            {
                uint64_t *p = pm_map(argv);
                unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                pthread_t thread;
                code[0] = 0xc3; /* ret */
                ((void (*)(void))code)();
                pthread_create(&thread, NULL, work, NULL);
                pthread_join(thread, NULL);
                p[0] = argc;
                PERSIST(p);
                return 0;
            }""")
        self.compile("-O1", "-I", PROGRAMS, "generates.c", "-o", "generates", "-pthread")
        self.run_tool("check", "--pm", "pool", "--json", "result.json", "./generates", "pool")
        limits = " ".join(self.load()["limits"])
        self.assertIn("generates code while it runs, which", limits)
        self.assertIn("what that does is not seen", limits)


if __name__ == "__main__":
    unittest.main()
