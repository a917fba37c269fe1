# SPDX-License-Identifier: BSD-3-Clause
"""Programs that were not built with perdure-cc: they do what they did, and what they do to PM is seen."""

import os
import re
import shutil
import subprocess
import sys
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
                result = self.run_tool("run", "--quiet", "--pm", "pool", "./everything", "pool", "200", status=1)
                self.assertEqual(result.stdout, expected)
                (self.directory / "pool").unlink()

    def test_programs_without_pm(self):
        self.write("numbers", "".join("%d\n" % (i * 7919 % 300007) for i in range(300000)))
        for command in (("sort", "--parallel=2", "numbers"),  # many enough for a second thread
                        ("gzip", "-nc", "numbers"), ("perl", "-e", 'print join(",", map { $_ * 2 } 1..999)'),
                        ("ls", "-a")):
            with self.subTest(command=command):
                expected = subprocess.run(command, cwd=self.directory, capture_output=True, check=True).stdout
                for options in (("--patch", "libz.*"), ()):  # what is named is patched at once
                    ran = subprocess.run([TOOLS / "perdure", "run", "--stats", *options, "--", *command],
                                         cwd=self.directory, capture_output=True)
                    self.assertEqual((ran.returncode, ran.stdout), (3, expected))
                    patched = re.search(rb"(\d+) of \d+ instructions", ran.stderr)
                    self.assertEqual(bool(patched and int(patched[1])), bool(options), ran.stderr)

    def test_traps_that_were_blocked_before(self):
        self.write("blocked.c", r"""
            #include <signal.h>
            #include "pm.h"
            int main(int argc, char **argv)
            {
                sigset_t traps, now;
                long *pm;
                sigemptyset(&traps);
                sigaddset(&traps, SIGTRAP);
                sigprocmask(SIG_BLOCK, &traps, NULL);
                pm = pm_map(argv); /* patched here */
                *pm = argc;
                PERSIST(pm);
                sigprocmask(SIG_BLOCK, NULL, &now);
                FILE *status = fopen("/proc/self/status", "r");
                char line[256];
                unsigned long really = 0;
                while (fgets(line, sizeof(line), status))
                    sscanf(line, "SigBlk: %lx", &really);
                printf("%d %d\n", sigismember(&now, SIGTRAP), (int)(really >> (SIGTRAP - 1) & 1));
                return 0;
            }""")
        self.build("gcc", "blocked.c", "blocked", "-O2")
        result = self.run_tool("run", "--pm", "pool", "./blocked", "pool", status=0)
        self.assertEqual(result.stdout, "1 0\n")  # as the program sees it, and as it is

    def test_all_of_pmdk_is_patched(self):
        self.write("pool.c", r"""
            #include <libpmemobj.h>
            int main(int argc, char **argv)
            {
                PMEMobjpool *pool = pmemobj_create(argv[1], "test", PMEMOBJ_MIN_POOL, 0600);
                PMEMoid root = pmemobj_root(pool, 64);
                pmemobj_memset_persist(pool, pmemobj_direct(root), argc, 64);
                pmemobj_close(pool);
                return 0;
            }""")
        self.build("gcc", "pool.c", "pool", "-lpmemobj")
        result = self.run_tool("run", "--stats", "./pool", "file", status=0)
        patched = re.search(r"(\d+) of (\d+) instructions", result.stderr)
        self.assertEqual(patched[1], patched[2], result.stderr)
        self.assertGreater(int(patched[1]), 10000)

    def test_addresses_of_their_own(self):
        address = "100000000000"
        for flags in ((), ("-DEARLY",), ("-DMISSING",), ("-DMISSING", "-DEARLY")):
            self.build("gcc", BINARY / "fixed.c", "fixed", "-O2", *flags)
            for where in (address, "7fdd40000000", "20000000"):
                for given in ((), ("--pm-at", where)):
                    with self.subTest(flags=flags, where=where, given=given):
                        lost = "-DEARLY" in flags and not given  # a thread runs before there is PM: too late
                        (self.directory / "pool").unlink(missing_ok=True)
                        result = self.run_tool("run", "--pm", "pool", *given, "./fixed", "pool", where,
                                               status=3 if lost else "-DMISSING" in flags)
                        self.assertEqual(result.stdout, "hello 42\n")
                        self.assertEqual("fixed.c:38" in result.stderr, "-DMISSING" in flags and not lost)
                        self.assertEqual("--pm-at" in result.stderr, lost)
        for flags, status in (((), 0), (("-DUNORDERED",), 1)):
            self.build("gcc", BINARY / "fixed.c", "fixed", "-O2", *flags)
            for command in ("check", "model"):
                with self.subTest(command=command, flags=flags):
                    (self.directory / "pool").unlink(missing_ok=True)
                    result = self.run_tool(command, "--pm", "pool", "--pm-at", address,
                                           "--recover", "./fixed pool %s look" % address,
                                           "./fixed", "pool", address, status=status)
                    self.assertEqual("recovery aborts" in result.stderr, bool(status))

    @unittest.skipUnless(shutil.which("gdb"), "there is no debugger here")
    def test_debugger(self):
        self.build("gcc", BINARY / "fixed.c", "fixed", "-O2", "-DMISSING")
        ran = subprocess.run(
            ["gdb", "-q", "-nx", "-batch", "-ex", "set confirm off", "-ex", "set detach-on-fork on",
             "-ex", "set follow-fork-mode child", "-ex", "set breakpoint pending on", "-ex", "break write_text",
             "-ex", "run", "-ex", "backtrace", "-ex", "print text", "-ex", "finish", "-ex", "print root->text",
             "-ex", "continue", "--args", TOOLS / "perdure", "run", "--pm", "pool", "./fixed", "pool", "100000000000"],
            cwd=self.directory, capture_output=True, text=True, timeout=60)
        self.assertRegex(ran.stdout, r"#0 +write_text .*\n#1 .*\bfill \(.*\n#2 .*\bmain \(")
        self.assertIn('$1 = 0x', ran.stdout)
        self.assertRegex(ran.stdout, r'\$2 = "hello')
        self.assertIn("exited normally", ran.stdout)

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

    def test_frames_of_many_kinds(self):
        # Known once, frames are known for good: unwind tables are slow. The last store has the stack pointer to itself.
        self.write("frames.c", r"""
            #include <alloca.h>
            #include <string.h>
            #include "pm.h"
            #define NOINLINE __attribute__((noinline, noclone, noipa)) static
            enum { ROUNDS = 2000 };
            static long *pm;
            NOINLINE void leaf(long i)
            {
                pm[i % 512] = i;
                if (i != ROUNDS)
                    PERSIST(&pm[i % 512]);
            }
            NOINLINE long saves_rbp(long i) /* and uses it for something else, but not at once */
            {
                if (i > 1)
                    CHANGE_RBP;
                leaf(i);
                return i;
            }
            NOINLINE long aligned(long i)
            {
                _Alignas(64) char buffer[128];
                char *more = alloca(16 * (i % 3) + 16);
                long sum;
                memset(buffer, (int)i, sizeof(buffer));
                __asm__ volatile("" : : "r"(buffer), "r"(more) : "memory");
                sum = saves_rbp(i);
                return sum + buffer[i % 64];
            }
            NOINLINE long varies(long i)
            {
                char *room = alloca(i == ROUNDS ? 400 : 16 * (i % 5) + 16);
                __asm__ volatile("" : : "r"(room) : "memory");
                return aligned(i) + room[0] * 0;
            }
            int main(int argc, char **argv)
            {
                long sum = 0;
                pm = pm_map(argv);
                for (long i = 1; i <= ROUNDS; i++)
                    sum += varies(i);
                return sum == argc;
            }""")
        change = '-DCHANGE_RBP=__asm__ volatile("mov $1, %%ebp" ::: "rbp")'
        for flags in (("-O2", "-fomit-frame-pointer", change), ("-O0", "-DCHANGE_RBP="),
                      ("-O2", "-fno-omit-frame-pointer", "-DCHANGE_RBP=")):
            with self.subTest(flags=flags):
                self.build("gcc", "frames.c", "frames", *flags)
                (self.directory / "pool").unlink(missing_ok=True)
                self.run_tool("run", "--pm", "pool", "--json", "result.json", "./frames", "pool", status=1)
                result = self.load()
                self.assertEqual([[frame["function"] for frame in f["sites"][0]["stack"]] for f in result["findings"]],
                                 [["leaf", "saves_rbp", "aligned", "varies", "main"]])
                self.assertLess(result["stats"]["unwound_stacks"], 200)

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
        result = self.run_tool("run", "--no-patch", "libfill*", "--pm", "pool", "./opens", "pool", status=0)
        self.assertIn("0 findings (0 stores", result.stderr)

    def test_signals_anywhere(self):
        for level in ("-O0", "-O2"):
            with self.subTest(level=level):
                self.build("g++", BINARY / "signals.cc", "signals", level)
                self.native("./signals", "pool")
                (self.directory / "pool").unlink()
                for command, status in (["run"], 1), (["threads"], 0), (["threads", "--sample", "1/3"], 0):
                    result = self.run_tool(*command, "--quiet", "--pm", "pool", "./signals", "pool", "40000",
                                           status=status)
                    self.assertEqual(result.stdout.splitlines()[-6:], [
                        "sums 40000 12484375, ticks are counted in PM 1, stacks lost 0, some ticks 1",
                        "traps 102, blocked 1 1", "handlers are the program's own: 1 1", "repaired 6144",
                        "caught 3 3", "child 5"], command)
                    (self.directory / "pool").unlink()

    def test_done_by_hooks(self):
        """What hooks do in place of an instruction is what the processor does."""
        self.build("gcc", BINARY / "locked.c", "locked", "-O1")
        self.native("./locked", "pool")
        (self.directory / "pool").unlink()
        for command in ["run"], ["run", "--pm-heap"], ["threads"], ["threads", "--sample", "1/2"]:
            result = self.run_tool(*command, "--quiet", "--pm", "pool", "./locked", "pool", status=None)
            self.assertEqual(result.stdout.splitlines()[-1], "0 different of 171000", command)
            (self.directory / "pool").unlink()

    def test_operator_new(self):
        """--pm-heap: allocators bring operators of their own, and what these promise holds."""
        self.write("other.cc", r"""
            #include <cstddef>
            static char memory[1 << 20];
            static size_t used;
            void *operator new(size_t size) { return &memory[used += (size + 15) / 16 * 16]; }
            void operator delete(void *) noexcept {}
            void operator delete(void *, size_t) noexcept {}""")
        self.write("user.cc", r"""
            #include <cstdio>
            #include <new>
            struct alignas(64) line { long word[8]; };
            static int calls;
            static void handler() { if (++calls == 2) std::set_new_handler(nullptr); }
            int main(int argc, char **argv)
            {
                volatile size_t much = (size_t)1 << 60;
                volatile long *one = new long, *many = new long[0];
                line *aligned = new line;
                std::set_new_handler(handler);
                try { printf("%p\\n", new char[much]); } catch (std::bad_alloc &) { printf("%d calls\\n", calls); }
                printf("%d\\n", new (std::nothrow) char[much] == nullptr && (size_t)aligned % 64 == 0 && many);
                delete[] many;
                delete aligned;
                *one = 7; /* never flushed */
                return 0;
            }""".replace("\\\\n", "\\n"))
        self.build("g++", "other.cc", "libother.so", "-shared", "-fPIC", "-O1")
        for name, flags in (("user", ()), ("user-other", ("-Wl,--no-as-needed", "./libother.so"))):
            self.build("g++", "user.cc", name, "-std=c++17", "-O1", *flags)
            result = self.run_tool("run", "--pm-heap", "./" + name, status=1)
            self.assertEqual(result.stdout, self.native("./user"))
            self.assertIn("missing-flush [correctness]: 8 bytes", result.stderr)

    def test_random_instructions(self):
        """Registers, flags, memory and signals are the same, in moved code and in its hits."""
        count, seeds = os.environ.get("PERDURE_RANDOM_INSTRUCTIONS", "2000 1").split()
        subprocess.run(["gcc", "-O1", BINARY / "generate.c", "-o", "generate", "-lZydis"], cwd=self.directory, check=True)
        for seed in range(1, int(seeds) + 1):
            with open(self.directory / "snippets.s", "w") as snippets:
                subprocess.run(["./generate", count, str(seed)], cwd=self.directory, check=True, stdout=snippets)
            subprocess.run(["gcc", "-no-pie", "-O1", BINARY / "execute.c", BINARY / "execute.S", "snippets.s", "-o",
                            "execute"], cwd=self.directory, check=True)
            (self.directory / "results").unlink(missing_ok=True)
            expected = self.native("./execute", "pool", "results").splitlines()
            self.assertEqual(len(expected), int(count))
            self.assertGreater(sum("signal 0" in line for line in expected), int(count) / 2)
            for command, more in ((["run"], {}), (["run"], {"PERDURE_NO_BMI2": "1"}),  # as on an older processor
                                  (["threads"], {}), (["threads"], {"PERDURE_NO_WARM_UP": "1"}),
                                  (["threads", "--sample", "1/2"], {"PERDURE_NO_WARM_UP": "1"})):
                ran = subprocess.run([TOOLS / "perdure", *command, "--quiet", "--pm", "pool", "./execute", "pool", "results"],
                                     cwd=self.directory, capture_output=True, text=True, timeout=300,
                                     env={**os.environ, **more}).stdout.splitlines()[-int(count):]
                different = [pair for pair in zip(expected, ran) if pair[0] != pair[1]]
                self.assertEqual((len(ran), different), (int(count), []), "seed %d" % seed)
                results = (self.directory / "results").read_text().splitlines()
                self.assertEqual(len({*results}), 1, "seed %d: a first run" % seed)

    def test_random_flow(self):
        """Loops and branches in moved code: what they do, which of it is PM, and where signals find them."""
        for seed in range(int(os.environ.get("PERDURE_RANDOM_FLOWS", "4"))):
            with open(self.directory / "flow.s", "w") as flow:
                subprocess.run([sys.executable, BINARY / "flow.py", str(seed)], check=True, stdout=flow)
            self.build("gcc", BINARY / "flow.c", "flow", "flow.s", "-O1", *(("-no-pie",) if seed % 2 else ()))
            (self.directory / "results").unlink(missing_ok=True)
            expected = self.native("./flow", "pool", "1000", "results")
            (self.directory / "pool").unlink()
            for command in ["run"], ["threads"], ["threads", "--sample", "1/2"]:
                for more in {}, {"PERDURE_NO_BMI2": "1"}, {"PERDURE_NO_WARM_UP": "1"}:
                    with self.subTest(seed=seed, command=command, more=more):
                        ran = subprocess.run([TOOLS / "perdure", *command, "--quiet", "--json", "result.json", "--pm",
                                              "pool", "./flow", "pool", "1000", "results"], cwd=self.directory,
                                             capture_output=True, text=True, timeout=300, env={**os.environ, **more})
                        self.assertEqual(ran.stdout.splitlines()[-1:], expected.splitlines(), ran.stderr)
                        self.assertEqual({*(self.directory / "results").read_text().splitlines()}, {*expected.splitlines()})
                        if command == ["run"]:
                            self.assertEqual(self.load()["stats"]["stores"], int(expected.split()[0]))
                    (self.directory / "pool").unlink()

    def test_jump_into_the_middle(self):
        """Nobody knows of the jump: its goal is computed, and lies inside of what was moved together."""
        self.write("middle.c", r"""
            #include "pm.h"
            extern char start[], inside[];
            int main(int argc, char **argv)
            {
                long *pm = pm_map(argv), count = 0;
                void *goal;
                pm[0] = 7;
                for (int i = 0; i < 3; i++) {
                    __asm__ volatile("leaq 1f(%%rip), %0\n\t addq %3, %0\n\t jmp *%0\n"
                                     "1: movq %2, (%1)\n\t incq %2\n\t incq %2\n\t nop"
                                     : "=&r"(goal), "+r"(pm), "+r"(count) : "r"(i == 1 ? 3l : 0l) : "memory", "cc");
                }
                return count == 6 && pm[0] == 4 ? 0 : 1;
            }""")
        self.build("gcc", "middle.c", "middle", "-O1")
        self.native("./middle", "pool")
        (self.directory / "pool").unlink()
        result = self.run_tool("run", "--stats", "--pm", "pool", "./middle", "pool", status=1)
        self.assertIn("1 jumps were redirected", result.stderr)
        self.assertNotIn("the program ended with", result.stderr)

    def test_system_calls_by_number(self):
        self.write("number.c", r"""
            #define _GNU_SOURCE
            #include "pm.h"
            #include <sys/syscall.h>
            int main(int argc, char **argv)
            {
                int fd = syscall(SYS_openat, AT_FDCWD, argv[1], O_RDWR | O_CREAT, 0600);
                long *pm, flags = MAP_SHARED;
                syscall(SYS_ftruncate, fd, 65536);
            #ifdef INLINE
                register long r10 __asm__("r10") = flags, r8 __asm__("r8") = fd, r9 __asm__("r9") = 0;
                __asm__ volatile("syscall" : "=a"(pm) : "a"(SYS_mmap), "D"(0), "S"(65536), "d"(PROT_READ | PROT_WRITE),
                                 "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
            #else
                pm = (long *)syscall(SYS_mmap, 0, 65536, PROT_READ | PROT_WRITE, flags, fd, 0);
            #endif
                pm[0] = 1;
                return 0;
            }""")
        self.build("gcc", "number.c", "number", "-O1")
        self.run_tool("run", "--pm", "*pool", "--json", "result.json", "./number", "pool", status=1)
        self.assertEqual([f["kind"] for f in self.load()["findings"]], ["missing-flush"])
        self.build("gcc", "number.c", "number", "-O1", "-DINLINE")
        result = self.run_tool("run", "--pm", "*pool", "./number", "pool", status=3)
        self.assertIn("not made through the C library", result.stderr)
        self.build("gcc", "number.c", "number", "-O1", "-static")
        result = self.run_tool("run", "--pm", "*pool", "./number", "pool", status=3)
        self.assertIn("it is statically linked", result.stderr)

    def test_plans_are_kept(self):
        self.write("plan.c", r"""
            #include "pm.h"
            int main(int argc, char **argv) { long *pm = pm_map(argv); pm[argc] = 1; return 0; }""")
        self.build("gcc", "plan.c", "plan", "-O1", "-Wl,--build-id")
        cache = self.directory / "cache"
        cache.mkdir()

        def patched():
            environment = {**os.environ, "PERDURE_CACHE": str(cache)}
            ran = subprocess.run([TOOLS / "perdure", "run", "--stats", "--pm", "pool", "./plan", "pool"],
                                 cwd=self.directory, capture_output=True, text=True, env=environment)
            self.assertEqual(ran.returncode, 1, ran.stderr)
            return re.search(r"(\d+) of \1 instructions", ran.stderr)[1]

        first = patched()
        plan, = cache.iterdir()
        self.assertEqual(patched(), first)
        content = bytearray(plan.read_bytes())
        content[70] ^= 0xff  # not believed, and written anew
        plan.write_bytes(content)
        self.assertEqual(patched(), first)
        plan.write_bytes(content[:100])
        self.assertEqual(patched(), first)
        self.assertEqual([p.name for p in cache.iterdir()], [plan.name])

    def test_requests_to_valgrind(self):
        """pmemcheck's requests are heard; and only libpmem* is told that Valgrind is there."""
        self.write("request.c", r"""
            #include "pm.h"
            static long request(long number, const void *address, long size)
            {
                volatile long arguments[6] = { number, (long)address, size };
                long result = 77;
                __asm__ volatile("rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi; xchgq %%rbx, %%rbx"
                                 : "+d"(result) : "a"(arguments) : "cc", "memory");
                return result;
            }
            int main(int argc, char **argv)
            {
                long *pm = pm_map(argv);
                if (request(0x1001, 0, 0) != 77) return 3;
                pm[0] = 1;
                request(0x50430000 + 17, pm, 8);      /* set clean */
                pm[8] = 1;
                request(0x50430000 + 5, pm + 8, 8);   /* flush … */
                request(0x50430000 + 6, 0, 0);        /* … and fence */
                pm[16] = 1;
                request(0x50430000 + 2, pm + 24, 8);  /* volatile on purpose */
                pm[24] = 1;
                return 0;
            }""")
        self.build("gcc", "request.c", "request", "-O2")
        self.run_tool("run", "--pm", "pool", "--json", "result.json", "./request", "pool", status=1)
        self.assertEqual([(f["kind"], f["sites"][0]["line"]) for f in self.load()["findings"]], [("missing-flush", 20)])
        self.assertEqual(self.load()["target"]["exit"], 0)


if __name__ == "__main__":
    unittest.main()
