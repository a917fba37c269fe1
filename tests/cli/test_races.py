# SPDX-License-Identifier: BSD-3-Clause
"""perdure threads: programs whose threads act on what others have not persisted, and their fixed twins."""

import os
import re
import subprocess
import unittest

from support import PROGRAMS, TOOLS, TestCase

RACES = PROGRAMS.parent / "races"


def pairs_wanted(source, mark="load"):
    """Lines of loads and stores, as the program names them."""
    stores, loads = {}, []
    for number, line in enumerate(source.read_text().splitlines(), 1):
        for name in re.findall(r"/\* store: (\w+) \*/", line):
            stores[name] = number
        for names in re.findall(r"/\* %s: ([\w ]+?) \*/" % mark, line):
            loads += [(number, name) for name in names.split()]
    return {(load, stores[name]) for load, name in loads}


def shown(site, source):
    """The innermost line in the program itself."""
    return next((frame["line"] for frame in site["stack"] if frame["file"] and frame["file"].endswith(source.name)), None)


TWO_THREADS = r"""
int main(int argc, char **argv)
{
    pthread_t a, b;
    pm = pm_map(argv);
    pthread_create(&a, NULL, store, NULL);
    pthread_create(&b, NULL, load, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return 0;
}
"""


class Clocks:
    """What happens before what, in a trace: for each thread, how much it knows of the others."""

    def __init__(self):
        self.known, self.objects = {}, {}

    def of(self, thread):
        return self.known.setdefault(thread, {thread: 1})

    def release(self, thread, thing):
        own = self.of(thread)
        known = self.objects.setdefault(thing, {})
        for other, time in own.items():
            known[other] = max(known.get(other, 0), time)
        own[thread] += 1

    def acquire(self, thread, thing):
        own = self.of(thread)
        for other, time in self.objects.get(thing, {}).items():
            if other != thread:
                own[other] = max(own.get(other, 0), time)


def races_by_definition(trace):
    """Lines of all loads and stores in a trace that are a race by Definition 1: a window from a store to its
    persist, and a load of another thread that neither comes after the persist nor before the store."""
    clocks, windows, loads, pairs = Clocks(), {}, {}, set()
    for line in trace.read_text().splitlines():
        words, _, place = line.partition(" @ ")
        words = words.split()
        thread, kind = words[0], words[1]
        place = int(place.split()[0].rpartition(":")[2]) if place else None
        if kind in ("load", "store"):
            address, size = int(words[2], 16), int(words[3])
            now = clocks.of(thread)
            for byte in range(address, address + size):
                if kind == "load":
                    for (storer, store), window in windows.get(byte, {}).items():
                        persisted = window["by"] and now.get(window["by"], 0) >= window["at"]
                        if storer != thread and not persisted:
                            pairs.add((place, store))
                    loads.setdefault(byte, {})[thread, place] = now[thread]
                else:
                    for (loader, load), time in loads.get(byte, {}).items():
                        if loader != thread and now.get(loader, 0) < time:
                            pairs.add((load, place))
                    windows.setdefault(byte, {})[thread, place] = {
                        "by": None, "at": None, "flushed": "nt" in words, "thread": thread}
        elif kind == "flush":
            start = int(words[3], 16) & -64
            for byte in range(start, start + 64):
                for window in windows.get(byte, {}).values():
                    if not window["by"]:
                        window["flushed"] = thread
                        if words[2] == "clflush":
                            window["by"], window["at"] = thread, clocks.of(thread)[thread]
        elif kind == "fence":
            for byte in windows.values():
                for window in byte.values():
                    if not window["by"] and window["flushed"] in (thread, True) and (
                            window["flushed"] == thread or window["thread"] == thread):
                        window["by"], window["at"] = thread, clocks.of(thread)[thread]
        elif kind == "unlock":
            clocks.release(thread, words[2])
        elif kind == "lock":
            clocks.acquire(thread, words[2])
    return pairs


class Races(TestCase):
    def build(self, compiler, source, *flags):
        if source.suffix == ".cc":
            flags += ("-std=c++17",)
            compiler = {"gcc": "g++", "clang": "clang++", TOOLS / "perdure-cc": TOOLS / "perdure-c++"}[compiler]
        subprocess.run([compiler, "-g", "-w", source, "-o", "program", "-pthread", *flags], cwd=self.directory, check=True)

    def races(self, source, *options, status=None):
        (self.directory / "pool").unlink(missing_ok=True)
        self.run_tool("threads", "--pm", "pool", "--json", "result.json", *options, "./program", "pool", status=status)
        return {(shown(f["sites"][0], source), shown(f["sites"][1], source)) for f in self.load()["findings"]}

    def test_programs(self):
        for source in sorted([*RACES.glob("*.c"), *RACES.glob("*.cc")]):
            wanted = pairs_wanted(source)
            self.assertTrue(wanted, source)
            for compiler, level in (("gcc", "-O0"), ("gcc", "-O2"), ("clang", "-O2"), (TOOLS / "perdure-cc", "-O2")):
                with self.subTest(program=source.name, compiler=str(compiler), level=level):
                    self.build(compiler, source, level)
                    self.assertEqual(self.races(source, "--runs", "6", status=1) - pairs_wanted(source, "perhaps"), wanted)
                    self.build(compiler, source, level, "-DFIXED")
                    self.assertEqual(self.races(source, status=0), set())

    def test_every_race_is_one_by_definition(self):
        for source in sorted([*RACES.glob("*.c"), *RACES.glob("*.cc")]):
            with self.subTest(program=source.name):
                self.build("gcc", source, "-O2", "-DROUNDS=300")
                found = self.races(source, "--trace", "trace", "--detector", "both", status=None)
                self.assertLessEqual(found, races_by_definition(self.directory / "trace"))

    def test_figure_1_every_time(self):
        source = RACES / "figure1.c"
        for level in ("-O0", "-O2"):
            for flags, status in ((("-DFIXED",), 0), ((), 1)):
                self.build("gcc", source, level, "-DROUNDS=1000", *flags)
                runs = int(os.environ.get("PERDURE_RACES_RUNS", "0"))
                options = () if runs else ("--runs", "8")  # the machine has other things to do, too
                for _ in range(runs or 1):
                    self.assertEqual(self.races(source, *options, status=status), pairs_wanted(source) if status else set())

    def test_detectors(self):
        # Threads that run one after the other: no regions are open together, but nothing orders them.
        self.write("apart.c", r"""
            #include "../programs/pm.h"
            #include <pthread.h>
            static long *pm;
            static void *store(void *unused)
            {
                *pm = 1;
                PERSIST(pm);
                sched_yield();
                return unused;
            }
            static void *load(void *unused)
            {
                usleep(200000);
                return (void *)*pm;
            }""".replace("../programs", str(PROGRAMS)) + TWO_THREADS)
        self.build("gcc", self.directory / "apart.c", "-O2")
        for detector, status, names in (("pifr", 0, []), ("hb", 1, ["hb"]), ("both", 1, ["hb"])):
            with self.subTest(detector=detector):
                self.races(self.directory / "apart.c", "--detector", detector, status=status)
                self.assertEqual([n for f in self.load()["findings"] for n in f["race"]["detectors"]], names)

    def test_volatile_data(self):
        self.write("volatile.c", r"""
            #include "../programs/pm.h"
            #include <pthread.h>
            static long *pm;
            static void *store(void *unused)
            {
                for (int i = 0; i < 2000; i++)
                    __atomic_fetch_add(&pm[1], 1, __ATOMIC_RELAXED);
                return unused;
            }
            static void *load(void *unused)
            {
                long sum = 0;
                for (int i = 0; i < 2000; i++)
                    sum += __atomic_load_n(&pm[1], __ATOMIC_RELAXED) + pm[32];
                return sum ? NULL : unused;
            }
            static long *pm_map_and_say(char **argv)
            {
                long *p = pm_map(argv);
                if (argv[2]) { /* VALGRIND_PMC_REMOVE_PMEM_MAPPING */
                    volatile uint64_t request[6] = { (uint64_t)'P' << 24 | 'C' << 16 | 2, (uintptr_t)&p[1], sizeof(*p) };
                    uint64_t answer = 0;
                    __asm__ volatile("rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi;"
                                     "xchgq %%rbx,%%rbx" : "=d"(answer) : "a"(request), "0"(answer) : "cc", "memory");
                }
                return p;
            }
            #define pm_map pm_map_and_say
            """.replace("../programs", str(PROGRAMS)) + TWO_THREADS)
        for tool in "gcc", TOOLS / "perdure-cc":
            self.build(tool, self.directory / "volatile.c", "-O2")
            self.races(self.directory / "volatile.c", "--runs", "4", status=1)
            self.run_tool("threads", "--pm", "pool", "./program", "pool", "volatile", status=0)

    def test_who_waits_releases_nothing(self):
        """A table is looked up before its lock is taken, as while a hash table grows: whoever waits for the lock goes
        on with what may be lost."""
        source = self.write("blocked.c", r"""
            #include "races.h"
            struct root {
                _Alignas(64) volatile long table;
                _Alignas(64) volatile int lock;
            };
            static struct root *root;
            static void lock(void)
            {
            #ifdef EXCHANGE
                while (__atomic_exchange_n(&root->lock, 1, __ATOMIC_ACQUIRE))
                    ;
            #else
                while (!__sync_bool_compare_and_swap(&root->lock, 0, 1))
                    ;
            #endif
            }
            static void unlock(void)
            {
                root->lock = 0;
            }
            static void *grow(void *unused)
            {
                lock();
                usleep(100000);
                root->table = 2; /* store: table */
                PERSIST((void *)&root->table);
                unlock();
                return unused;
            }
            static void *insert(void *unused)
            {
                usleep(10000);
                WHEN_BUGGY(sink = root->table); /* load: table */
                lock();
                WHEN_FIXED(sink = root->table);
                unlock();
                return unused;
            }
            int main(int argc, char **argv)
            {
                root = pm_map(argv);
                run_both(grow, insert);
                return 0;
            }""")
        for compiler, *flags in ("gcc", "-O0"), ("gcc", "-O2", "-DEXCHANGE"), ("clang", "-O2"):
            with self.subTest(compiler=compiler, flags=flags):
                self.build(compiler, source, "-I", RACES, *flags)
                self.assertEqual(self.races(source, "--runs", "4", status=1), pairs_wanted(source))
                self.build(compiler, source, "-I", RACES, "-DFIXED", *flags)
                self.races(source, status=0)

    def test_memory_that_is_used_again(self):
        """What was a lock becomes data; and nobody reads what another one had stored in an object that was freed."""
        self.write("again.c", r"""
            #include <pthread.h>
            #include <stdlib.h>
            #include "pm.h"
            static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
            static volatile long *shared, sum;
            static void *locker(void *unused)
            {
                for (int i = 0; i < 300; i++) {
                    int *word = aligned_alloc(64, 64);
                    *word = 0;
                    for (int j = 0; j < 4; j++) {
                        while (__atomic_exchange_n(word, 1, __ATOMIC_ACQUIRE))
                            ;
                        __atomic_store_n(word, 0, __ATOMIC_RELEASE);
                    }
                    free(word);
                }
                return unused;
            }
            static void *scratch(void *unused)
            {
                for (long i = 0; i < 2000; i++) {
                    volatile long *p = aligned_alloc(64, 64);
                    *p = i;
                    free((void *)p);
                }
                return unused;
            }
            static void *worker(void *unused)
            {
                for (long i = 0; i < 2000; i++) {
                    volatile long *p = aligned_alloc(64, 64);
                    *p = i;
                    PERSIST((void *)p);
                    pthread_mutex_lock(&mutex);
                    sum += *p;
                    pthread_mutex_unlock(&mutex);
                    free((void *)p);
                }
                return unused;
            }
            static void *writer(void *unused)
            {
                for (long i = 0; i < 2000; i++) {
                    pthread_mutex_lock(&mutex);
                    *shared = i + 1000;
            #ifdef FIXED
                    PERSIST((void *)shared);
            #endif
                    pthread_mutex_unlock(&mutex);
                    pthread_mutex_lock(&mutex);
                    PERSIST((void *)shared);
                    pthread_mutex_unlock(&mutex);
                }
                return unused;
            }
            static void *reader(void *unused)
            {
                for (long i = 0; i < 2000; i++) {
                    pthread_mutex_lock(&mutex);
                    sum += *shared; /* the race */
                    pthread_mutex_unlock(&mutex);
                }
                return unused;
            }
            static void together(void *(*one)(void *), void *(*other)(void *))
            {
                pthread_t a, b;
                pthread_create(&a, NULL, one, NULL);
                pthread_create(&b, NULL, other, NULL);
                pthread_join(a, NULL);
                pthread_join(b, NULL);
            }
            int main(void)
            {
                together(locker, locker);
                together(scratch, worker);
                shared = aligned_alloc(64, 64);
                *shared = 0;
                PERSIST((void *)shared);
                together(writer, reader);
                return 0;
            }""")
        wanted = next(n for n, line in enumerate((self.directory / "again.c").read_text().splitlines(), 1) if "the race" in line)
        for detector in "pifr", "hb", "both":
            for flags, status in ((), 1), (("-DFIXED",), 0):
                with self.subTest(detector=detector, flags=flags):
                    self.build("gcc", self.directory / "again.c", "-O2", "-I", PROGRAMS, *flags)
                    self.run_tool("threads", "--pm-heap", "--json", "result.json", "--detector", detector, "--runs", "2", "./program",
                                  status=status)
                    lines = {shown(f["sites"][0], self.directory / "again.c") for f in self.load()["findings"]}
                    self.assertEqual(lines, {wanted} if status else set())

    def test_ended_in_the_first_run(self):
        self.write("endless.c", r"""
            #include "../programs/pm.h"
            int main(int argc, char **argv)
            {
                volatile long *pm = (volatile long *)pm_map(argv);
                close(open("ready", O_CREAT | O_WRONLY, 0600));
                for (;;)
                    pm[0]++;
            }""".replace("../programs", str(PROGRAMS)))
        self.build("gcc", self.directory / "endless.c", "-O2")
        process = subprocess.Popen([TOOLS / "perdure", "threads", "--pm", "pool", "./program", "pool"], text=True,
                                   cwd=self.directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while not (self.directory / "ready").exists():
            self.assertIsNone(process.poll())
        process.terminate()
        self.assertIn("was ended in its first run", process.communicate(timeout=60)[1])
        self.assertEqual(process.returncode, 4)

    def test_endless_after_the_first_run(self):
        self.write("endless.c", r"""
            #include "../programs/pm.h"
            int main(int argc, char **argv)
            {
                long *pm = pm_map(argv);
                *pm = 1;
                PERSIST(pm);
                if (!mkdir("was-here", 0700))
                    return 0;
                for (;;)
                    *(volatile long *)pm;
            }""".replace("../programs", str(PROGRAMS)))
        self.build("gcc", self.directory / "endless.c", "-O2")
        result = self.run_tool("threads", "--pm", "pool", "--json", "result.json", "./program", "pool", status=4)
        self.assertIn("more than ten times as long as in its first run", result.stderr)
        self.assertFalse(self.load()["complete"])

    def test_options(self):
        source = RACES / "figure1.c"
        self.build("gcc", source, "-O2")
        wanted = pairs_wanted(source)
        self.assertEqual(self.races(source, "--delay", "1", "--decay", "20", "--seed", "3", "--runs", "2", status=1), wanted)
        self.assertLessEqual(self.races(source, "--sample", "1/4", "--runs", "2", status=1), wanted)
        minimal = self.races(source, "--minimal-regions", "--runs", "4", status=1)
        self.assertLessEqual(minimal, wanted)
        (self.directory / "pool").unlink()
        text = self.run_tool("threads", "--quiet", "--pm", "pool", "--dump-regions", "./program", "pool", status=1).stdout
        self.assertRegex(text, r"(?m)^writer: store at .*figure1.c:\d+\+.* starts at .*figure1.c")
        self.races(source, "--dump-regions=regions.dot", status=1)
        self.assertTrue((self.directory / "regions.dot").read_text().startswith("digraph"))
        for bad in ("--sample=2", "--detector=all", "--runs=0", "--delay=x", "--decay=101"):
            self.run_tool("threads", bad, "./program", status=2)

    def test_stacks(self):
        """Whose caller's caller it was, though only the outermost of the calls differ."""
        self.write("stacks.c", r"""
            #include "pm.h"
            #include <pthread.h>
            static volatile long *pm, sum;
            #define APART __attribute__((noinline, noclone, optimize("no-optimize-sibling-calls")))
            static APART void one(int i) { sum += pm[i]; sum += pm[i + 1]; }
            static APART void other(int i) { sum += pm[i]; sum += pm[i + 1]; }
            static APART void get_one(int i) { one(i); __asm__(""); }
            static APART void get_other(int i) { other(i); __asm__(""); }
            static void *store(void *unused)
            {
                for (long i = 0; i < 40000; i++) {
                    pm[i % 6 * 64 + i % 2] = i;
                    PERSIST((void *)&pm[i % 6 * 64]);
                }
                return unused;
            }
            static APART void *load(void *unused)
            {
                for (long i = 0; i < 40000; i++) {
                    get_one(0); /* at 0 */
                    get_one(64); /* at 64 */
                    one(128); /* at 128 */
                    other(192); /* at 192 */
                    get_other(256); /* at 256 */
                    get_other(320); /* at 320 */
                }
                return unused;
            }
            """ + TWO_THREADS)
        self.build("gcc", self.directory / "stacks.c", "-O1", "-I", PROGRAMS)
        self.races(self.directory / "stacks.c", "--runs", "2", status=1)
        lines = (self.directory / "stacks.c").read_text().splitlines()
        seen = set()
        for f in self.load()["findings"]:
            index = int(f["object"]["offset"]) // 8 // 64 * 64
            frames = [frame["line"] for frame in f["sites"][0]["stack"] if frame["function"] == "load"]
            self.assertEqual(len(frames), 1, f["sites"][0]["stack"])
            self.assertIn("/* at %d */" % index, lines[frames[0] - 1])
            seen.add(index)
        self.assertEqual(len(seen), 6)

    def test_forks(self):
        """Threads that have loaded a lot make processes that load a lot: nobody dies, and the race is found."""
        self.write("forks.c", r"""
            #include "pm.h"
            #include <pthread.h>
            #include <sys/wait.h>
            static volatile long *pm;
            static void *store(void *unused)
            {
                for (long i = 0; i < 20000; i++) {
                    pm[64] = i;
                    PERSIST((void *)&pm[64]);
                }
                return unused;
            }
            static void *load(void *unused)
            {
                long sum = 0;
                int status, round;
                for (round = 0; round < 4; round++) {
                    for (long i = 0; i < 20000; i++)
                        sum += pm[i % 128];
                    if (fork() == 0) {
                        for (long i = 0; i < 20000; i++)
                            sum += pm[i % 128];
                        _exit(7);
                    }
                    if (wait(&status) < 0 || status != 7 << 8)
                        abort();
                }
                return sum == -1 ? NULL : unused;
            }
            """ + TWO_THREADS)
        self.build("gcc", self.directory / "forks.c", "-O1", "-I", PROGRAMS, "-include", "stdlib.h")
        self.races(self.directory / "forks.c", "--runs", "2", status=1)
        self.assertEqual(self.load()["target"]["exit"], 0)

    def test_flush_on_read(self):
        """A reader that writes back what it has read before it relies on it, and one that does not."""
        self.write("reader.c", r"""
            #include <pthread.h>
            #include "pm.h"
            static struct { _Alignas(64) volatile long head; _Alignas(64) long copy; } *pm;
            static void *store(void *unused)
            {
                for (long i = 0; i < 20000; i++) {
                    pm->head = i;
                    PERSIST(&pm->head);
                }
                return unused;
            }
            static void *load(void *unused)
            {
                for (long i = 0; i < 20000; i++) {
                    long seen = pm->head;
                    WHEN_FIXED(PERSIST(&pm->head));
                    pm->copy = seen;
                    PERSIST(&pm->copy);
                }
                return unused;
            }
            """ + TWO_THREADS)
        source = self.directory / "reader.c"
        for flags, options, found in (((), (), True), (("-DFIXED",), (), True), ((), ("--flush-on-read",), True),
                                      (("-DFIXED",), ("--flush-on-read",), False)):
            with self.subTest(flags=flags, options=options):
                self.build("gcc", source, "-O2", "-I", PROGRAMS, *flags)
                effects = [f["race"]["effects"] for f in (self.races(source, "--runs", "3", *options, status=None),
                                                          self.load()["findings"])[1]]
                self.assertEqual(any("read" in e for e in effects), found)

    def test_what_is_fed(self):
        """Whether it is the value that was read that is stored, and not just anything."""
        self.write("feed.c", r"""
            #include <pthread.h>
            #include <string.h>
            #include "pm.h"
            static struct { _Alignas(64) volatile long head; char more[32]; _Alignas(64) volatile long copy; char text[32];
                            _Alignas(64) long node[1000]; } *pm;
            static void *store(void *unused)
            {
                for (long i = 1; i < 20000; i++) {
                    pm->head = FEED == 2 ? (long)&pm->node[i % 900] : i * 1000003;
                    for (volatile int wait = 0; wait < 300; wait++)
                        ;
                    PERSIST(&pm->head);
                }
                return unused;
            }
            static void *load(void *unused)
            {
                for (long i = 0; i < 20000; i++) {
                    long seen = FEED == 3 ? 0 : pm->head;
                    if (FEED == 0)
                        pm->copy = i & 127;
                    if (FEED == 1)
                        pm->copy = seen;
                    if (FEED == 2 && seen)
                        ((volatile long *)seen)[3] = 1;
                    if (FEED == 3)
                        memcpy(pm->text, (const void *)&pm->head, pm->copy + 24);
                }
                return unused;
            }
            """ + TWO_THREADS)
        source = self.directory / "feed.c"
        for tool in "gcc", TOOLS / "perdure-cc":
            for feed in range(4):
                with self.subTest(tool=str(tool), feed=feed):
                    self.build(tool, source, "-O2", "-I", PROGRAMS, "-DFEED=%d" % feed)
                    self.races(source, "--runs", "6", status=1)
                    effects = [e for f in self.load()["findings"] for e in f["race"]["effects"]]
                    self.assertIn("pm-store", effects)
                    self.assertEqual("value" in effects, feed > 0)

    def test_server(self):
        """Two threads that serve a client, which must do its work."""
        self.write("server.c", r"""
            #include <arpa/inet.h>
            #include <pthread.h>
            #include <sys/socket.h>
            #include "pm.h"
            static long *pm;
            static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
            static void *serve(void *fd)
            {
                char byte;
                while (read((int)(long)fd, &byte, 1) == 1) {
                    pthread_mutex_lock(&lock);
                    byte = (char)++*pm;
                    pthread_mutex_unlock(&lock);
                    if (write((int)(long)fd, &byte, 1) != 1)
                        break;
                    PERSIST(pm); /* too late: the client knows */
                }
                return NULL;
            }
            int main(int argc, char **argv)
            {
                struct sockaddr_in to = { AF_INET, htons(atoi(argv[2])), { htonl(INADDR_LOOPBACK) } };
                int fd = socket(AF_INET, SOCK_STREAM, 0);
                pthread_t thread;
                pm = pm_map(argv);
                if (bind(fd, (struct sockaddr *)&to, sizeof(to)) < 0 || listen(fd, 5) < 0)
                    return 1;
                for (;;)
                    pthread_create(&thread, NULL, serve, (void *)(long)accept(fd, NULL, NULL));
            }""")
        self.write("client.py", r"""
import socket, sys, threading
def talk():
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as s:
        for _ in range(300):
            s.sendall(b"x")
            s.recv(1)
threads = [threading.Thread(target=talk) for _ in range(2)]
[t.start() for t in threads]
[t.join() for t in threads]
""")
        self.build("gcc", self.directory / "server.c", "-O2", "-I", PROGRAMS)
        port = str(20000 + os.getpid() % 20000)
        run = lambda client, status: self.run_tool("threads", "--pm", "pool", "--json", "result.json", "--drive", client,
                                                   "./program", "pool", port, status=status)
        run("python3 client.py " + port, 1)
        self.assertIn("output", [e for f in self.load()["findings"] for e in f["race"]["effects"]])
        self.assertIn("ended with status 7", run("exit 7", 3).stderr)

    def test_files_and_input(self):
        """Each run finds the files and the input that the first one found, and only one is heard."""
        self.write("again.c", r"""
            #include "pm.h"
            int main(int argc, char **argv)
            {
                char text[16] = "";
                int fd = open(argv[1], O_RDWR);
                long *pm = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
                if (open("made.pool", O_RDWR | O_CREAT | O_EXCL, 0600) < 0 || !fgets(text, 16, stdin))
                    return 7;
                printf("%ld %s", pm[0]++, text);
                return 0;
            }""")
        self.build("gcc", self.directory / "again.c", "-O2", "-I", PROGRAMS)
        (self.directory / "a.pool").write_bytes(b"\5" + bytes(4095))
        result = self.run_tool("threads", "--pm", "*.pool", "--runs", "3", "./program", "a.pool", input="words\n")
        self.assertEqual(result.stdout, "5 words\n")
        self.assertEqual((self.directory / "a.pool").read_bytes()[0], 6)

    def test_functions_by_name(self):
        """A lock that nobody could guess."""
        self.write("own.c", r"""
            #include <pthread.h>
            #include "pm.h"
            static long *pm;
            static int turn; /* whose turn it is */
            __attribute__((noinline, noipa)) void own_take(int who)
            {
                while (*(volatile int *)&turn != who)
                    sched_yield();
            }
            __attribute__((noinline, noipa)) void own_give(int who) { *(volatile int *)&turn = !who; }
            static void *work(void *who)
            {
                for (int i = 0; i < 2000; i++) {
                    own_take(!!who);
                    *pm += i;
                    PERSIST(pm);
                    own_give(!!who);
                }
                return who;
            }
            int main(int argc, char **argv)
            {
                pthread_t thread;
                pm = pm_map(argv);
                pthread_create(&thread, NULL, work, &thread);
                work(NULL);
                pthread_join(thread, NULL);
                return 0;
            }""")
        self.build("gcc", self.directory / "own.c", "-O2", "-I", PROGRAMS)
        options = ("--acquire", "own_t*", "--release", "own_give")
        self.assertEqual(self.races(self.directory / "own.c", *options, "--detector", "both", status=0), set())
        self.assertIn("no function nothing", self.run_tool("threads", "--pm", "pool", "--acquire", "nothing", "./program",
                                                           "pool", status=None).stderr)

    def test_what_recovery_repairs(self):
        """A counter that recovery counts again, and a value that it believes."""
        self.write("repair.c", r"""
            #include <pthread.h>
            #include "pm.h"
            static struct { _Alignas(64) volatile long value; _Alignas(64) long count; } *pm;
            static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
            static volatile long sink;
            static void *work(void *unused)
            {
                for (int i = 0; i < 40; i++) {
                    pthread_mutex_lock(&lock);
                    sink = pm->value + pm->count;
                    pm->value = i;
                    pm->count = i;
                    pthread_mutex_unlock(&lock);
                    PERSIST(&pm->value);
                    PERSIST(&pm->count);
                }
                return unused;
            }
            int main(int argc, char **argv)
            {
                pthread_t thread;
                pm = pm_map(argv);
                pm->count = 0; /* whatever it was */
                PERSIST(&pm->count);
                sink = pm->value;
                if (argc > 2)
                    return 0;
                pthread_create(&thread, NULL, work, NULL);
                work(NULL);
                pthread_join(thread, NULL);
                return 0;
            }""")
        self.build("gcc", self.directory / "repair.c", "-O2", "-I", PROGRAMS)
        self.races(self.directory / "repair.c", "--check-recovery", "--recover", "./program pool look", status=1)
        repaired = {(shown(f["sites"][1], self.directory / "repair.c"), f["race"]["repaired"]) for f in self.load()["findings"]}
        self.assertEqual({r for r in repaired if r[0] in (12, 13)}, {(12, False), (13, True)})


if __name__ == "__main__":
    unittest.main()
