# SPDX-License-Identifier: BSD-3-Clause
"""perdure check as a user meets it: what it leaves alone, what it survives, budgets, servers."""

import os
import random
import signal
import subprocess
import time
import unittest

from support import PROGRAMS, TOOLS, TestCase

# Writes numbers one after the other, each persistent before the count says so. What the recovery
# does with them is said by its second argument, once there are five of them.
COUNTS = r"""
#include "pm.h"
#include <perdure/perdure.h>
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <sys/wait.h>
struct pm { _Alignas(64) _Atomic uint64_t count; _Alignas(64) uint64_t number[4096]; };
int main(int argc, char **argv)
{
    struct pm *pm = pm_map(argv);
    const char *how = argc > 2 ? argv[2] : "";
    uint64_t wanted = argc > 3 ? strtoul(argv[3], NULL, 0) : 10, sum = 0;
    if (strcmp(how, "quiet"))
        printf("hello\n");
    for (uint64_t i = 0; i < pm->count; i++)
        sum += pm->number[i];
    if (perdure_stage() && pm->count >= 5) {
        if (!strcmp(how, "forks")) for (;;) if (fork() == 0) for (;;) pause();
        if (!strcmp(how, "orphan") && fork() == 0) { setsid(); for (;;) pause(); }
        if (!strcmp(how, "eats")) for (;;) memset(malloc(1 << 20), 1, 1 << 20);
        if (!strcmp(how, "prints")) for (;;) { char text[4096]; memset(text, 'x', 4096); fwrite(text, 1, 4096, stdout); }
        if (!strcmp(how, "writes")) { FILE *f = fopen("big", "w"); for (;;) { char text[4096] = ""; fwrite(text, 1, 4096, f); } }
        if (!strcmp(how, "wild")) for (char *p = (char *)pm;; p += 4096) *p = 1;
        if (!strcmp(how, "parent")) { kill(getppid(), SIGKILL); pause(); }
        if (!strcmp(how, "aborts")) { fprintf(stderr, "these are my last words\n"); abort(); }
        if (!strcmp(how, "status")) return 3;
        if (!strcmp(how, "destroys")) {
            char line[512]; FILE *maps = fopen("/proc/self/maps", "r");
            while (fgets(line, sizeof(line), maps))
                if (strstr(line, "perdure-session"))
                    memset((void *)strtoul(line, NULL, 16), 0x41, 1 << 20);
            return 0;
        }
        if (!strcmp(how, "waits")) pause();
        if (!strcmp(how, "sleeps")) { sleep(1000); srand(time(NULL)); if (rand() % 2 == 0) usleep(rand() % 1000); }
    }
    if (!strcmp(how, "dies") && pm->count == 0 && !perdure_stage()) {
        pm->number[0] = 1;
        PERSIST(&pm->number[0]);
        raise(SIGKILL);
    }
    for (uint64_t i = pm->count; i < wanted && !perdure_stage(); i++) {
        pm->number[i] = sum + i;
        PERSIST(&pm->number[i]);
        pm->count = i + 1;
        PERSIST(&pm->count);
    }
    return 0;
}
"""

SERVER = r"""
#include "pm.h"
#include <netinet/in.h>
#include <sys/socket.h>
#include <signal.h>
#include <errno.h>
struct pm { _Alignas(64) _Atomic uint64_t count; _Alignas(64) uint64_t number[64]; };
static volatile sig_atomic_t ended;
static void on_term(int number) { ended = number; }
int main(int argc, char **argv)
{
    struct pm *pm = pm_map(argv);
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(atoi(argv[2])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct sigaction action = { .sa_handler = on_term };
    int listener = socket(AF_INET, SOCK_STREAM, 0), fd;
    uint64_t sum = 0;
    sigaction(SIGTERM, &action, NULL);
    for (uint64_t i = 0; i < pm->count; i++)
        sum += pm->number[i];
    if (bind(listener, (struct sockaddr *)&address, sizeof(address)) || listen(listener, 8))
        return 5;
    while (!ended && (fd = accept(listener, NULL, NULL)) >= 0) {
        char text[32] = "";
        while (read(fd, text, sizeof(text) - 1) > 0 && pm->count < 64) {
            pm->number[pm->count] = atoi(text) + sum;
#ifdef FIXED
            PERSIST(&pm->number[pm->count]);
#else
            CLWB(&pm->number[pm->count]);
#endif
            __atomic_store_n((uint64_t *)&pm->count, pm->count + 1, __ATOMIC_RELEASE);
            PERSIST(&pm->count);
            if (write(fd, "ok\n", 3) != 3)
                break;
        }
        close(fd);
    }
    return 0;
}
"""

CLIENT = r"""
import socket, sys
for number in (3, 4):
    with socket.create_connection(("127.0.0.1", int(sys.argv[1])), 10) as connection:
        connection.sendall(b"%d\n" % number)
        connection.recv(10)
"""


def processes_of(directory):
    found = []
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink("/proc/%s/cwd" % number) == str(directory) and int(number) != os.getpid():
                found.append(number)
        except OSError:
            pass  # it has ended meanwhile
    return found


class Check(TestCase):
    def setUp(self):
        super().setUp()
        self.write("counts.c", COUNTS)
        self.compile("-O1", "-I", PROGRAMS, "counts.c", "-o", "counts")

    def check(self, *words, status=0, options=(), **more):
        result = self.run_tool("check", "--json", "result.json", "--pm", "pool", *options, "--",
                               "./counts", "pool", *words, status=status, **more)
        self.result = self.load() if (self.directory / "result.json").exists() else None
        for _ in range(50):
            if not processes_of(self.directory):
                break
            time.sleep(0.1)
        self.assertEqual(processes_of(self.directory), [])
        return result

    def only_symptom(self, text):
        kinds = {f["kind"] for f in self.result["findings"]}
        self.assertEqual(kinds, {"crash-symptom"})
        self.assertIn(text, self.result["findings"][0]["message"])

    def files(self):
        return sorted(p.name for p in self.directory.iterdir())

    def test_leaves_everything_as_it_was(self):
        self.check()
        self.assertEqual(self.files(), ["counts", "counts.c", "result.json"])
        self.run_tool("run", "--pm", "pool", "./counts", "pool", "", "3")
        before = (self.directory / "pool").read_bytes()
        self.check()
        self.assertEqual((self.directory / "pool").read_bytes(), before)
        self.check(options=["--keep"])
        self.assertNotEqual((self.directory / "pool").read_bytes(), before)

    def test_default_command(self):
        self.assertIn("hello", self.run_tool("--pm", "pool", "./counts", "pool").stdout)
        self.assertIn("did you mean check", self.run_tool("chekc", status=2).stderr)
        self.assertIn("option of perdure check",
                      self.run_tool("run", "--jobs", "2", "./counts", status=2).stderr)

    def test_statistics(self):
        self.check()
        stats = self.result["stats"]
        self.assertEqual(self.result["engine"], "check")
        self.assertEqual(stats["crash_points"], 22)
        self.assertGreater(stats["memo_hits"], 0)
        self.assertGreater(stats["executions"], 1)
        self.assertTrue(self.result["complete"])

    def test_output_of_recoveries_is_theirs(self):
        result = self.check()
        self.assertEqual(result.stdout.count("hello"), 1)

    def test_symptom_with_its_last_words(self):
        result = self.check("aborts", status=1)
        self.only_symptom("aborts")
        finding = self.result["findings"][0]
        self.assertIn("my last words", finding["witness"]["output"])
        self.assertIn("my last words", result.stderr)
        self.assertEqual(finding["sites"][0]["role"], "crash")
        self.assertEqual(finding["sites"][0]["function"], "main")
        self.assertGreater(finding["crash_point"]["number"], 5)

    def test_bad_exit(self):
        self.check("status")
        self.check("status", status=1, options=["--bad-exit", "2-4"])
        self.only_symptom("status 3")
        self.check("status", status=1, options=["--bad-exit", "nonzero"])
        self.check("status", options=["--bad-exit", "4"])
        self.run_tool("check", "--bad-exit", "x", "./counts", status=2)

    def test_recoveries_that_take_too_much(self):
        few = ["--max-crash-points", "3", "--timeout", "1"]
        self.check("forks", status=1, options=few)
        self.only_symptom("processes")
        self.check("prints", status=1, options=few)
        self.only_symptom("files")
        self.check("writes", status=1, options=few)
        self.only_symptom("files")
        self.assertNotIn("big", self.files())
        self.check("eats", status=1, options=[*few, "--max-memory", "200"])
        self.only_symptom("memory")
        self.check("waits", status=1, options=few)
        self.only_symptom("waits")

    def test_recoveries_that_misbehave(self):
        few = ["--max-crash-points", "3"]
        self.check("wild", status=1, options=few)
        self.only_symptom("SIG")
        self.check("orphan", options=few)
        self.assertIn("overwritten", self.check("destroys", status=3, options=few).stderr)
        self.check("parent", status=1, options=[*few, "--timeout", "1"])
        self.only_symptom("waits")

    def test_main_returns_a_bad_status(self):
        self.check("status", status=1, options=["--bad-exit", "3", "--junit", "junit.xml"])
        self.assertEqual(self.result["findings"][0]["sites"][0]["function"], "main")
        self.assertIn("crash point", (self.directory / "junit.xml").read_text())

    def test_time_and_chance_are_the_same_for_all(self):
        self.check("sleeps")
        self.assertTrue(self.result["complete"], self.result["limits"])
        self.assertGreater(self.result["stats"]["memo_hits"], 0)
        self.assertLess(self.result["stats"]["seconds"], 20)

    def test_program_that_is_killed(self):
        self.check("dies")
        self.assertEqual(self.result["target"]["signal"], signal.SIGKILL)
        self.assertGreater(self.result["stats"]["crash_points"], 1)

    def test_files_that_cannot_be_used(self):
        self.write("pool", "")
        os.chmod(self.directory / "pool", 0o400)
        if os.getuid() != 0:
            self.check(status=3)
        result = self.run_tool("check", "--pm", "*pool", "./counts", "missing/pool", status=3)
        self.assertIn("mapped no persistent memory", result.stderr)

    def test_recovery_that_is_not_there(self):
        result = self.check(status=3, options=["--recover", "./nothing"])
        self.assertIn("cannot run ./nothing", result.stderr)
        self.run_tool("check", "--recover", "'", "./counts", status=2)

    def test_another_recovery(self):
        self.write("script", "#!/bin/sh\n./counts pool aborts >/dev/null\n")
        os.chmod(self.directory / "script", 0o755)
        self.check(status=1, options=["--recover", "./counts pool aborts"])
        self.only_symptom("aborts")
        self.check(status=1, options=["--recover", "./script", "--bad-exit", "134"])
        self.only_symptom("status 134")
        self.check(options=["--recover", "true"])
        self.assertEqual(self.files(), ["counts", "counts.c", "result.json", "script"])

    def test_checker(self):
        self.write("checker", "#!/bin/sh\nhead -c 8 pool | od -An -tu8 | grep -qv ' 7$'\n")
        os.chmod(self.directory / "checker", 0o755)
        self.check(status=1, options=["--checker", "./checker"])
        self.only_symptom("inconsistent")
        self.check(options=["--checker", "true"])

    def test_vacuous_recoveries(self):
        self.check(options=["--recover", "./counts other quiet"])
        self.assertIn("is this the program that recovers", self.result["limits"][0])
        self.assertGreater(self.result["stats"]["vacuous_recoveries"], 10)

    def test_explaining_takes_its_time_and_no_more(self):
        """Recovery dies if all lines are missing, and hangs if some are: there is no end to asking which."""
        self.write("hangs.c", r"""
            #include "pm.h"
            #include <stdlib.h>
            enum { LINES = 60 };
            int main(int argc, char **argv)
            {
                long *pm = (long *)pm_map(argv);
                volatile long *made = &pm[0], sum = 0;
                if (*made) {
                    for (int i = 1; i <= LINES; i++)
                        sum += pm[i * 8];
                    if (!sum)
                        abort();
                    while (sum < LINES)
                        ;
                    return 0;
                }
                for (int i = 1; i <= LINES; i++)
                    pm[i * 8] = 1;
                *made = 1;
                PERSIST(&pm[0]);
                return 0;
            }""")
        self.compile("-I", PROGRAMS, "hangs.c", "-g", "-o", "hangs")
        result = self.run_tool("check", "--pm", "pool", "--timeout", "5", "./hangs", "pool", status=1)
        self.assertIn("recovery aborts", result.stderr)

    def test_roots_of_the_heap(self):
        self.write("roots.c", r"""
            #include <emmintrin.h>
            #include <perdure/perdure.h>
            #include <stdlib.h>
            int main(int argc, char **argv)
            {
                long *p = argc > 1 ? NULL : perdure_root_get(0);
                if (p)
                    return *p != 7;
                p = aligned_alloc(64, 64);
                *p = 7;
                _mm_clflush(p);
                _mm_sfence();
                perdure_root_set(0, p);
                return 0;
            }""")
        self.compile("-g", "roots.c", "-o", "roots")
        self.run_tool("check", "--pm-heap", "--strict-commit", "./roots", status=0)
        self.assertIn("perdure_root_get", self.run_tool("check", "--pm-heap", "./roots", "forgetful", status=0).stderr)

    def test_budgets(self):
        self.check("quiet", "4000", status=4, options=["--max-time", "1"])
        self.assertIn("--max-time", " ".join(self.result["limits"]))
        self.check("quiet", "500", options=["--max-crash-points", "10"])
        self.assertIn("10 of 1002 crash points, evenly spread", " ".join(self.result["limits"]))
        self.assertFalse(self.result["complete"])

    def test_interrupted_half_way(self):
        process = subprocess.Popen(
            [TOOLS / "perdure", "--json", "result.json", "--no-memo", "--pm", "pool", "./counts",
             "pool", "quiet", "4000"], cwd=self.directory, stderr=subprocess.PIPE, text=True)
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        text = process.communicate(timeout=20)[1]
        self.assertEqual(process.returncode, 4, text)
        result = self.load()
        self.assertIn("Ctrl-C", " ".join(result["limits"]))
        self.assertGreater(result["stats"]["executions"], 100)
        self.assertEqual(result["stats"]["crash_points"], 8002)
        self.assertEqual(self.files(), ["counts", "counts.c", "result.json"])
        self.assertEqual(processes_of(self.directory), [])

    def test_two_at_once(self):
        words = [TOOLS / "perdure", "--quiet", "--pm", "pool", "./counts", "pool", "aborts"]
        both = [subprocess.Popen(words, cwd=self.directory, stdout=subprocess.DEVNULL)
                for _ in range(2)]
        self.assertEqual([process.wait(60) for process in both], [1, 1])

    def test_standard_input(self):
        self.write("reads.c", COUNTS.replace("uint64_t wanted = ", """char line[20] = "";
            if (!fgets(line, 20, stdin) || strcmp(line, "ten\\n")) abort();
            uint64_t wanted = """))
        self.compile("-O1", "-I", PROGRAMS, "reads.c", "-o", "counts")
        self.check(input="ten\n")
        self.write("input", "ten\n")
        with open(self.directory / "input") as file:
            self.check(stdin=file)

    def test_threads(self):
        self.write("threads.c", r"""
            #include "pm.h"
            #include <pthread.h>
            static volatile uint64_t *p;
            static void *work(void *unused) { p[0] = 1; CLWB((void *)p); SFENCE(); p[8] = 2; CLWB((void *)&p[8]); SFENCE(); return unused; }
            int main(int argc, char **argv)
            {
                pthread_t thread;
                p = pm_map(argv);
                if (p[0] && !p[8] && argc > 2)
                    abort();
                pthread_create(&thread, NULL, work, NULL);
                pthread_join(thread, NULL);
                return 0;
            }""")
        self.compile("-O1", "-I", PROGRAMS, "threads.c", "-o", "counts", "-pthread")
        self.check()
        self.assertEqual(self.result["limits"], [])
        self.assertGreater(self.result["stats"]["memo_hits"], 0)
        self.check("x", status=1)
        self.only_symptom("aborts")
        # A sanitizer's threads are real ones.
        self.compile("-O1", "-fsanitize=address", "-I", PROGRAMS, "threads.c", "-o", "counts", "-pthread")
        self.check()
        self.assertIn("several threads", " ".join(self.result["limits"]))
        self.check("x", status=1)
        self.assertIn("aborts", " ".join(f["message"] for f in self.result["findings"]))

    def test_other_files(self):
        self.write("files.c", r"""
            #include "pm.h"
            #include <errno.h>
            #include <sys/stat.h>
            struct pm { _Alignas(64) _Atomic uint64_t step; };
            static struct pm *pm;
            static void done(uint64_t step) { pm->step = step; PERSIST(&pm->step); }
            static int exists(const char *path) { return access(path, F_OK) == 0; }
            static void need(int condition) { if (!condition) abort(); }
            static char *content(const char *path)
            {
                static char text[64];
                FILE *file = fopen(path, "r");
                memset(text, 0, 64);
                need(file && (fread(text, 1, 63, file) > 0 || !ferror(file)));
                fclose(file);
                return text;
            }
            static void put(const char *path, const char *text)
            {
                FILE *file = fopen(path, "w");
                need(file != NULL);
                fputs(text, file);
                fclose(file);
            }
            int main(int argc, char **argv)
            {
                char name[] = "temporary-XXXXXX";
                struct stat status;
                uint64_t step;
                int fd;
                pm = pm_map(argv);
                need(!strcmp(content("given"), "as it was") || pm->step >= 4);
                switch (step = pm->step) {
                case 0: break;
                case 1: need(exists("note") || exists("renamed")); break;
                case 2: need(!exists("note") && !strcmp(content("renamed"), "one")); break;
                case 3: need(stat("made", &status) == 0 && S_ISDIR(status.st_mode));
                        need(!strcmp(content("made/inside"), "two")); break;
                case 4: need(!exists("renamed")); break;
                case 5: need(!strcmp(content("given"), "changed")); break;
                }
                if (step)
                    return 0;
                put("note", "one"); done(1);
                rename("note", "renamed"); done(2);
                mkdir("made", 0777); put("made/inside", "two"); done(3);
                unlink("renamed"); done(4);
                fd = open("given", O_WRONLY | O_TRUNC);
                need(write(fd, "changed", 7) == 7); close(fd); done(5);
                fd = mkstemp(name); need(fd >= 0 && exists(name)); close(fd);
                return 0;
            }""")
        self.compile("-O1", "-I", PROGRAMS, "files.c", "-o", "counts")
        self.write("given", "as it was")
        before = self.files()
        self.check()
        self.assertEqual(self.files(), sorted([*before, "result.json"]))
        self.assertEqual((self.directory / "given").read_text(), "as it was")
        self.assertGreater(self.result["stats"]["crash_points"], 10)

    def test_sanitizer(self):
        self.write("asan.c", r"""
            #include "pm.h"
            struct pm { _Alignas(64) volatile uint64_t ready; _Alignas(64) uint64_t length; };
            int main(int argc, char **argv)
            {
                struct pm *pm = pm_map(argv);
                if (pm->ready) {
                    char *copy = malloc(16);
                    memset(copy, 1, pm->length ? pm->length : 17);
                    free(copy);
                    return 0;
                }
                pm->length = 8;
                pm->ready = 1;
                PERSIST(&pm->ready);
                PERSIST(&pm->length);
                return 0;
            }""")
        self.compile("-fsanitize=address", "-I", PROGRAMS, "asan.c", "-o", "counts")
        self.check(status=1)
        messages = [f["message"] for f in self.result["findings"] if f["kind"] == "crash-symptom"]
        self.assertIn("AddressSanitizer: heap-buffer-overflow", messages[0])

    def test_caches_that_are_persistent(self):
        text = r"""
            #include "pm.h"
            struct pm { _Alignas(64) uint64_t data; _Alignas(64) _Atomic uint64_t valid; };
            int main(int argc, char **argv)
            {
                struct pm *pm = pm_map(argv);
                if (pm->valid && pm->data != 5)
                    abort();
                %s
                return 0;
            }"""
        data, valid = "pm->data = 5;", "__atomic_store_n((uint64_t *)&pm->valid, 1, __ATOMIC_RELEASE);"
        for statements, status in ((data + valid, 0), (valid + data, 1)):
            self.write("eadr.c", text % statements)
            self.compile("-I", PROGRAMS, "eadr.c", "-o", "counts")
            self.check(status=status, options=["--model", "eadr"])

    def test_server(self):
        self.write("server.c", SERVER)
        self.write("client.py", CLIENT)
        self.compile("-O1", "-I", PROGRAMS, "server.c", "-o", "server")
        self.compile("-O1", "-DFIXED", "-I", PROGRAMS, "server.c", "-o", "fixed")
        port = 20000 + os.getpid() % 20000
        words = ["check", "--json", "result.json", "--pm", "pool", "--drive",
                 "/usr/bin/python3 client.py %d" % port]
        self.run_tool(*words, "./server", "pool", port, status=1)
        finding = self.load()["findings"][0]
        self.assertEqual(finding["kind"], "cross-failure-race")
        self.run_tool(*words, "./fixed", "pool", port)
        self.assertGreater(self.load()["stats"]["crash_points"], 4)
        result = self.run_tool("check", "--pm", "pool", "--drive", "exit 5", "./fixed", "pool", port,
                               status=3)
        self.assertIn("status 5", result.stderr)
        result = self.run_tool("check", "--pm", "pool", "--drive", "true", "./counts", "pool",
                               status=3)
        self.assertIn("never listened", result.stderr)


class Memo(TestCase):
    """Recoveries that are known are not run: that must not change anything."""

    STATEMENTS = ["p[{a}] = {b};", "p[{a}] += {b};", "CLWB(&p[{a}]);", "SFENCE();", "CLFLUSH(&p[{a}]);",
                  "__atomic_store_n(&p[{a}], {b}, __ATOMIC_RELEASE);", "memset(&p[{a}], {b}, 24);"]
    READS = ["sum = sum * 3 + p[{a}];", "if (p[{a}] == {b}) sum += p[{c}];", "p[{a}] = {b};",
             "if (__atomic_load_n(&p[{a}], __ATOMIC_ACQUIRE)) sum ^= p[{c}];",
             "if (p[{a}] > {b}) abort();", "memcpy(copy, &p[{a}], 40); sum += copy[{d}];"]

    def program(self, rng):
        def some(statements, count):
            return "\n".join(rng.choice(statements).format(
                a=rng.randrange(40), b=rng.randrange(3), c=rng.randrange(40), d=rng.randrange(5))
                for _ in range(count))
        return """
            #include "pm.h"
            #include <perdure/perdure.h>
            int main(int argc, char **argv)
            {
                uint64_t *p = pm_map(argv), sum = 0, copy[5];
                if (perdure_stage()) { %s
                } else { %s
                }
                return sum == 12345;
            }""" % (some(self.READS, 12), some(self.STATEMENTS, 40))

    def findings(self, *options):
        self.run_tool("check", "--json", "result.json", "--quiet", "--pm", "pool", *options, "./program",
                      "pool", status=None)
        result = self.load()
        return result["stats"], sorted(
            (f["kind"], f["fingerprint"], f["count"], f["message"]) for f in result["findings"])

    def test_equals_running_everything(self):
        self.maxDiff = None
        hits = 0
        for seed in range(12):
            self.write("program.c", self.program(random.Random(seed)))
            self.compile("-O1", "-w", "-I", PROGRAMS, "program.c", "-o", "program")
            stats, found = self.findings()
            everything, all_found = self.findings("--no-memo", "--jobs", "1")
            self.assertEqual(found, all_found, "seed %d" % seed)
            self.assertEqual(everything["memo_hits"], 0)
            self.assertLess(stats["executions"], everything["executions"])
            hits += stats["memo_hits"]
            self.assertEqual(stats["crash_points"], everything["crash_points"])
        self.assertGreater(hits, 50)


if __name__ == "__main__":
    unittest.main()
