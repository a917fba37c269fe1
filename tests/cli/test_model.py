# SPDX-License-Identifier: BSD-3-Clause
"""perdure model: exactly what can be read after a crash, and no more work than that needs."""

import concurrent.futures
import os
import random
import sys
import unittest

from support import PROGRAMS, TestCase

MODEL = PROGRAMS.parent / "model"
sys.path.insert(0, str(MODEL))
import enumerate as machine  # noqa: E402
from litmus import LITMUS  # noqa: E402


class Interpreted(TestCase):
    def setUp(self):
        super().setUp()
        self.compile("-O1", MODEL / "interpreter.c", "-o", "interpreter", "-pthread")

    def outcomes(self, before, after, name="pool", *options, then=(), status=1):
        self.run_tool("model", "--quiet", "--jobs", 1, "--pm", name, "--json", name + ".json", *options,
                      "./interpreter", name, before, after, *then, status=status)
        result = self.load(name + ".json")
        (self.directory / (name + ".json")).unlink()
        for limit in result["limits"]:  # a recovery may well read what nobody has stored
            self.assertIn("without reading anything", limit)
        return {f["message"].strip() for f in result["findings"] if f["kind"] == "custom"}


class Litmus(Interpreted):
    def test_programs(self):
        for name, before, after, expected in LITMUS:
            with self.subTest(name=name):
                self.assertEqual(self.outcomes(before, after), set(expected))

    def test_enumerator(self):
        """What the random programs are compared with must be right itself."""
        for name, before, after, expected in LITMUS:
            with self.subTest(name=name):
                self.assertEqual({o.strip() for o in machine.outcomes(before, after, 3)}, set(expected))


class Settings(Interpreted):
    def test_order_of_pieces(self):
        """A store of 16 bytes is two of 8: the lower one first, unless any order is asked for."""
        program = ("0:w0,16=1 0:w64,16=2 0:f64", "0,1 8,1 64,1 72,1")
        ascending = {"0 0", "1 0", "1 1"}
        self.assertEqual(self.outcomes("0:w0,16=1", "0,1 8,1"), ascending)
        self.assertEqual(self.outcomes("0:w0,16=1", "0,1 8,1", "pool", "--chunk-order", "any"),
                         ascending | {"0 1"})
        first = {a + " " + b for a in ascending for b in ("0 0", "2 0", "2 2")}
        self.assertEqual(self.outcomes(*program), first)
        self.assertLess(first, self.outcomes(*program, "pool", "--chunk-order", "any"))
        self.assertIn("ascending or any", self.run_tool("model", "--chunk-order", "down", "x", status=2).stderr)

    def test_persistent_caches(self):
        """eADR: what has left the store buffer is persistent, in that order, flushed or not."""
        for before, after, expected in (
                ("0:w0,8=1 0:w64,8=1", "0,1 64,1", {"0 0", "1 0", "1 1"}),
                ("0:w0,8=1 0:w64,8=1 0:w0,8=2", "0,1 64,1", {"0 0", "1 0", "1 1", "2 1"}),
                ("0:w0,16=1", "0,1 8,1", {"0 0", "1 0", "1 1"}),
                ("0:w60,8=1", "60,1 64,1", {"0 0", "1 0", "1 1"}),
                ("0:x0=1 0:w64,8=1", "64,1 0,1", {"0 0", "0 1", "1 1"}),
                ("0:w0,8=1 0:b0 0:s 0:w64,8=1", "64,1 0,1", {"0 0", "0 1", "1 1"})):
            with self.subTest(before=before):
                self.assertEqual(self.outcomes(before, after, "pool", "--model", "eadr"), expected)


def random_operation(chance, threads):
    thread, kind, value = chance.randrange(threads), chance.random(), chance.randint(1, 6)
    if kind < 0.5:
        size = chance.choice((8, 8, 8, 8, 4, 2, 1, 16))
        offset = chance.choice((0, 8, 16, 64, 72, 56, 60, 4))
        offset = offset // 8 * 8 if size < 8 and offset % size else offset
        word = "w%d,%d=%d" % (offset, size, value)
    elif kind < 0.56:
        word = "x%d=%d" % (chance.choice((0, 64, 8)), value)
    elif kind < 0.6:
        word = "c%d=%d" % (chance.choice((0, 64)), value)
    elif kind < 0.84:
        word = "%s%d" % (chance.choice("ffooobbb"), chance.choice((0, 64)))
    elif kind < 0.96:
        word = chance.choice("sssmr")
    else:
        word = "n%d,8=%d" % (chance.choice((40, 104)), value)  # nobody else stores there
    return "%d:%s" % (thread, word)


def random_read(chance):
    size = chance.choice((8, 8, 1, 4, 2))
    offset = chance.choice((0, 8, 16, 64, 72, 40, 104, 56, 60))
    word = "%d,%d" % (offset // 8 * 8 if offset % size else offset, size)
    if chance.random() < 0.3:
        word += "=%d?%d" % (chance.randint(0, 6), chance.randint(1, 2))
    return word


def random_program(seed):
    """Two lines, one or two threads; a recovery that stores, too; and one with conditions that reads."""
    chance = random.Random(seed)
    threads = chance.choice((1, 2))
    before = [random_operation(chance, threads) for _ in range(chance.randint(2, 9))]
    between = [random_read(chance) if chance.random() < 0.35 else random_operation(chance, 1)
               for _ in range(chance.randint(1, 6))]
    after = [random_read(chance) for _ in range(chance.randint(1, 5))]
    return [" ".join(words) for words in (before, between, after)]


class Random(Interpreted):
    COUNT = int(os.environ.get("PERDURE_RANDOM_PROGRAMS", 1000))

    def compare(self, seed):
        before, _, after = random_program(seed)
        expected = {o.strip() for o in machine.outcomes(before, after, 2)}
        self.assertEqual(self.outcomes(before, after, "pool%d" % seed), expected, (seed, before, after))

    def compare_two(self, seed):
        before, between, after = random_program(seed)
        expected = {o.strip() for o in machine.outcomes_of_two(before, between, after, 2)}
        found = self.outcomes(before, between, "pool%d" % seed, "--crashes", 2, then=[after], status=None)
        self.assertEqual(found, expected, (seed, before, between, after))

    def test_lazy_is_eager(self):
        with concurrent.futures.ThreadPoolExecutor(2) as both:
            list(both.map(self.compare, range(self.COUNT // 2)))

    def test_two_crashes(self):
        with concurrent.futures.ThreadPoolExecutor(2) as both:
            list(both.map(self.compare_two, range(self.COUNT // 2)))


# N lines of data behind one commit store, which is set M times.
COMMITS = r"""
#include "pm.h"
struct pm { _Alignas(64) volatile uint64_t commit; _Alignas(64) uint64_t data[4096]; };
int main(int argc, char **argv)
{
    struct pm *pm = pm_map(argv);
    uint64_t lines = atoi(argv[2]), times = atoi(argv[3]), sum = 0;
    if (argc > 4) {
        uint64_t commit = pm->commit;
        for (uint64_t i = 0; commit && i < lines; i++)
            sum += pm->data[8 * i];
        return commit && sum == 0;
    }
    for (uint64_t t = 1; t <= times; t++) {
        if (t == 1)
            for (uint64_t i = 0; i < lines; i++)
                pm->data[8 * i] = 1;
        if (t == 1)
            for (uint64_t i = 0; i < lines; i++)
                CLWB(&pm->data[8 * i]);
        SFENCE();
        pm->commit = t;
        PERSIST(&pm->commit);
    }
    return 0;
}
"""


# Each recovery takes some time; some fail.
SLOW = r"""
#include "pm.h"
#include <perdure/perdure.h>
struct pm {
    _Alignas(64) volatile uint64_t count;
    struct { _Alignas(64) uint64_t key; } entry[64];
};
int main(int argc, char **argv)
{
    struct pm *pm = pm_map(argv);
    for (volatile int i = 0; i < 1000000; i++)
        ;
    for (uint64_t i = 0; i < pm->count; i++)
        if (pm->entry[i].key != i + 1) {
            if (i == 11)
                abort();
            perdure_found("a key is missing");
        }
    for (uint64_t i = pm->count; i < 24; i++) {
        pm->entry[i].key = i + 1;
        if (i != 5 && i != 11)
            CLWB(&pm->entry[i]);
        SFENCE();
        pm->count = i + 1;
        PERSIST((void *)&pm->count);
    }
    return argc > 2;
}
"""


def shown(result):
    return sorted((f["kind"], f["message"], tuple((s["role"], s["line"]) for s in f["sites"]))
                  for f in result["findings"])


class Work(TestCase):
    def setUp(self):
        super().setUp()
        self.write("commits.c", COMMITS)
        self.compile("-O1", "-I", PROGRAMS, "commits.c", "-o", "commits")

    def model(self, lines, times, *options, status=0):
        self.run_tool("model", "--pm", "pool", "--json", "result.json", "--bad-exit", "nonzero", "--disable",
                      "redundant-fence", *options, "--recover", "./commits pool %d %d recover" % (lines, times),
                      "./commits", "pool", lines, times, status=status)
        return self.load()

    def test_lines_behind_a_commit_store(self):
        counts = {self.model(lines, 1, "--jobs", 1)["stats"]["executions"] for lines in (1, 10, 100, 400)}
        self.assertEqual(len(counts), 1)
        result = self.model(400, 1)
        self.assertTrue(result["complete"])
        self.assertGreater(result["stats"]["eager_states_log2"], 399)

    def test_commit_stores_in_a_row(self):
        for times in (10, 100, 1000):
            result = self.model(1, times, "--jobs", 1)
            self.assertLessEqual(result["stats"]["executions"], times + 3)
            self.assertTrue(result["complete"])

    def test_what_a_budget_leaves_open(self):
        """The first crash takes longer than there is time: nobody knows whether what comes later is read."""
        self.write("late.c", r"""
            #include "pm.h"
            enum { LINES = 40 };
            int main(int argc, char **argv)
            {
                long *pm = (long *)pm_map(argv), sum = 0;
                volatile long *made = &pm[0], *two = &pm[8];
                if (*made) {
                    if (*two && !pm[16])
                        __builtin_trap();
                    for (int i = 3; i < LINES; i++)
                        sum += pm[i * 8];
                    return sum < 0;
                }
                for (int i = 3; i < LINES; i++)
                    pm[i * 8] = 1;
                *made = 1;
                PERSIST(&pm[0]);
                pm[16] = 1; /* never flushed */
                *two = 1;
                PERSIST(&pm[8]);
                return 0;
            }""")
        self.compile("-I", PROGRAMS, "late.c", "-g", "-o", "late")
        self.run_tool("model", "--jobs", "1", "--max-time", "1", "--pm", "pool", "--json", "result.json", "./late",
                      "pool", status=1)
        self.assertEqual([f["kind"] for f in self.load()["findings"] if f["sites"][0]["line"] == 19], ["missing-flush"])

    def test_goes_on_after_an_interruption(self):
        self.write("slow.c", SLOW)
        self.compile("-O1", "-I", PROGRAMS, "slow.c", "-o", "slow")
        whole = self.slow()
        self.assertTrue(whole["complete"])
        self.assertEqual({f["kind"] for f in whole["findings"]} - {"missing-flush", "cross-failure-race", "torn-store"},
                         {"crash-symptom", "custom"})
        limit, runs, result = 0.2, 0, None
        while not result or not result["complete"]:
            limit, runs = limit * 1.2, runs + 1
            result = self.slow("--resume", "state", "--max-time", "%.1f" % limit)
        self.assertGreater(runs, 1)
        self.assertEqual(shown(result), shown(whole))
        again = self.slow("--resume", "state")
        self.assertEqual(shown(again), shown(whole))
        self.assertTrue(again["complete"])
        self.assertEqual(again["stats"]["crash_points"], whole["stats"]["crash_points"])
        for name in (self.directory / "state").iterdir():
            name.write_text("{")
        self.assertEqual(shown(self.slow("--resume", "state")), shown(whole))

    def test_directory_of_states(self):
        self.write("file", "")
        self.assertIn("--resume", self.run_tool("model", "--resume", "none/such", "./commits", status=3).stderr)
        self.assertIn("--resume", self.run_tool("model", "--resume", "file", "./commits", status=3).stderr)

    def slow(self, *options):
        ran = self.run_tool("model", "--quiet", "--pm", "pool", "--json", "result.json", *options, "./slow", "pool",
                            status=None)
        result = self.load()
        # In a short time there may be nothing to find yet.
        self.assertIn(ran.returncode, (1,) if result["complete"] else (1, 4), ran.stderr)
        return result

    def test_by_chance(self):
        result = self.model(10, 20, "--random", 7, "--seed", 3)
        stats = result["stats"]
        self.assertLessEqual(stats["executions"] + stats["memo_hits"], 9)
        self.assertFalse(result["complete"])
        self.assertIn("--random", " ".join(result["limits"]))


if __name__ == "__main__":
    unittest.main()
