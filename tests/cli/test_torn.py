# SPDX-License-Identifier: BSD-3-Clause
"""Torn stores: what is found is what the definition says, for every crash of every run that looks the same."""

import concurrent.futures
import itertools
import os
import random
import unittest

from support import PROGRAMS, TestCase

HEAD = r"""
#include "pm.h"
#include <perdure/perdure.h>
#include <pthread.h>
#define PM(offset) ((uint64_t *)(base + (offset)))
static char *base;
static uint64_t ordinary[4];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int inside;
static void saw(const char *what, int number, uint64_t value) { printf("%s %d %lu\n", what, number, value); }
"""
LINE = 64


class Program:
    """
    Two threads; each operation is (kind, argument, line of the source). One thread is likely to store something and
    to flush it, the other one to store something else after that, with some order between them or none.
    """

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.lines, self.value, self.reads = HEAD.splitlines(), 0, []
        writer = self.chance.randrange(2)
        self.places = self.chance.sample((0, 8, 64), 2)  # of the one that flushes, and of the other
        self.threads = [self.thread(number, number == writer) for number in (0, 1)]
        self.main()

    def likely(self, probability):
        return self.chance.random() < probability

    def add(self, text):
        self.lines.append("    " + text)
        return len(self.lines)

    def store(self, offset, plain=False):
        self.value += 1
        order = self.chance.choice(("plain", "RELEASE", "RELAXED", "SEQ_CST"))
        order = "plain" if plain and self.likely(0.9) else order
        if order == "plain":
            line = self.add("*PM(%d) = %d;" % (offset, self.value))
        else:
            line = self.add("__atomic_store_n(PM(%d), %d, __ATOMIC_%s);" % (offset, self.value, order))
        self.operations.append(("store", (offset, self.value, order), line))
        if order == "SEQ_CST":
            self.operations.append(("fence", None, line))

    def flush(self, offset):
        if self.likely(0.4):
            self.operations.append(("clflush", offset // LINE, self.add("CLFLUSH(PM(%d));" % offset)))
            return
        self.operations.append(("clwb", offset // LINE, self.add("CLWB(PM(%d));" % offset)))
        if self.likely(0.7):
            self.operations.append(("fence", None, self.add("SFENCE();")))

    def give(self):
        self.value += 1
        line = self.add("__atomic_store_n(&ordinary[0], %d, __ATOMIC_RELEASE);" % self.value)
        self.operations.append(("give", self.value, line))

    def take(self):
        line = self.add('saw("took", %d, __atomic_load_n(&ordinary[0], __ATOMIC_ACQUIRE));' % len(self.lines))
        self.operations.append(("take", line - 1, line))

    def locked(self, locks, phrases):
        if locks:
            line = self.add('pthread_mutex_lock(&mutex); saw("locked", %d, inside++);' % len(self.lines))
            self.operations += [("fence", None, line), ("lock", line - 1, line)]
        for phrase in phrases:
            phrase()
        if locks:
            line = self.add("pthread_mutex_unlock(&mutex);")
            self.operations += [("fence", None, line), ("unlock", None, line)]

    def thread(self, number, writes):
        self.operations = []
        self.add("static void *thread_%d(void *unused)\n{" % number)
        self.lines = "\n".join(self.lines).splitlines()
        offset = self.places[not writes]
        phrases = [lambda: self.store(offset, writes)]
        if self.likely(0.8):
            phrases.append(lambda: self.flush(offset))
        if self.likely(0.2):
            phrases.append(lambda: self.store(self.chance.choice((0, 8, 64))))
        if not writes:
            for _ in range(self.chance.choice((0, 2, 5))):
                self.add("sched_yield();")
            if self.likely(0.5):
                self.take()
        self.locked(self.likely(0.5), phrases)
        if writes and self.likely(0.6):
            self.give()
        if self.likely(0.2):
            self.store(self.chance.choice((0, 8, 64)))
        self.add("return unused;\n}")
        self.lines = "\n".join(self.lines).splitlines()
        return self.operations

    def main(self):
        self.lines += """int main(int argc, char **argv)
{
    base = pm_map(argv);
    if (perdure_stage() > 0) {
        uint64_t value[3];
        char text[99];""".splitlines()
        reads = self.places[::-1] if self.likely(0.8) else self.places
        for number, offset in enumerate([*reads, self.chance.choice((0, 8, 64)) if self.likely(0.2) else reads[0]]):
            if number == 1:  # only who has seen the other thread's store
                text = "value[1] = value[0] ? *PM(%d) : 0;" % offset
            else:
                text = "value[%d] = *PM(%d);" % (number, offset)
            self.reads.append((offset, self.add(text)))
        self.lines += """        sprintf(text, "%lu %lu %lu", value[0], value[1], value[2]);
        perdure_found(text);
        return argc == 99;
    }
    pthread_t thread[2];
    pthread_create(&thread[0], NULL, thread_0, NULL);
    pthread_create(&thread[1], NULL, thread_1, NULL);
    pthread_join(thread[0], NULL);
    pthread_join(thread[1], NULL);
    return 0;
}""".splitlines()


class Order:
    """What happens before what, from what the run has printed about itself."""

    def __init__(self, program, output):
        said = {}
        for text in output.splitlines():
            what, number, value = text.split()
            said[what, int(number)] = int(value)
        self.event = [(thread, i) for thread in (0, 1) for i in range(len(program.threads[thread]))]
        self.what = {e: program.threads[e[0]][e[1]] for e in self.event}
        edges = {(e, f) for e in self.event for f in self.event if e[0] == f[0] and e[1] < f[1]}
        sections = []
        for e, (kind, argument, _) in self.what.items():
            if kind == "take":
                edges |= {(f, e) for f, (k, value, _) in self.what.items() if k == "give" and value == said["took", argument]}
            if kind == "lock":
                sections.append((said["locked", argument], e))
        for (_, one), (_, other) in itertools.pairwise(sorted(sections)):
            end = next(f for f in self.event if f[0] == one[0] and f[1] > one[1] and self.what[f][0] == "unlock")
            edges.add((end, other))
        self.before = {e: {f for f, g in edges if g == e} for e in self.event}
        for _ in self.event:
            for e in self.event:
                self.before[e] |= set().union(*(self.before[f] for f in self.before[e])) if self.before[e] else set()

    def crashes(self):
        """Every crash of every order of the events: what has happened by then."""
        lengths = [sum(e[0] == thread for e in self.event) for thread in (0, 1)]
        for ends in itertools.product(*(range(n + 1) for n in lengths)):
            happened = {e for e in self.event if e[1] < ends[e[0]]}
            if all(self.before[e] <= happened for e in happened):
                yield happened

    def is_race(self, store, read, happened):
        """Definition 5.1, for a run that crashed when this had happened; `read` before, in order."""
        offset, _, order = self.what[store][1]
        line = offset // LINE
        if order != "plain":
            return False
        for other in read:
            at, _, how = self.what[other][1]
            if at // LINE == line and how in ("RELEASE", "SEQ_CST") and store in self.before[other]:
                return False
        for flush in happened:
            kind, argument, _ = self.what[flush]
            if kind in ("clflush", "clwb") and argument == line and store in self.before[flush]:
                if kind == "clflush":
                    return False
                if any(f[0] == flush[0] and f[1] > flush[1] and self.what[f][0] == "fence" for f in happened):
                    return False
        return True


def expected(program, output, outcomes):
    order = Order(program, output)
    stores = {w[1][1]: e for e, w in order.what.items() if w[0] == "store"}
    crashes = list(order.crashes())
    races = set()
    for outcome in outcomes:
        read, known = [], set()
        for (offset, line), value in zip(program.reads, map(int, outcome.split())):
            store = stores.get(value)
            if not store or offset in known:  # only the first read of something is judged
                continue
            known.add(offset)
            if any(store in happened and set(read) <= happened and order.is_race(store, read, happened)
                   for happened in crashes):
                races.add((line, order.what[store][2]))
            read.append(store)
    return races


class Differential(TestCase):
    COUNT = int(os.environ.get("PERDURE_TORN_PROGRAMS", 60))

    def compare(self, seed):
        program, name = Program(seed), "program%d" % seed
        self.write(name + ".c", "\n".join(program.lines) + "\n")
        self.compile("-O0", "-g", "-I", PROGRAMS, name + ".c", "-o", name, "-pthread")
        ran = self.run_tool("model", "--quiet", "--jobs", 1, "--pm", "pool%d" % seed, "--json", name + ".json",
                            "./" + name, "pool%d" % seed, status=None)
        result = self.load(name + ".json")
        outcomes = {f["message"] for f in result["findings"] if f["kind"] == "custom"}
        found = {(f["sites"][0]["line"], s["line"]) for f in result["findings"] if f["kind"] == "torn-store"
                 for s in f["sites"][1:]}
        self.assertEqual(found, expected(program, ran.stdout, outcomes), (seed, outcomes))
        for end in ("", ".c", ".json"):
            (self.directory / (name + end)).unlink()
        return len(found)

    def test_prefixes(self):
        with concurrent.futures.ThreadPoolExecutor(2) as both:
            counts = list(both.map(self.compare, range(self.COUNT)))
        self.assertGreater(sum(count > 0 for count in counts), self.COUNT // 5)
        self.assertGreater(sum(count == 0 for count in counts), self.COUNT // 10)


class Structures(TestCase):
    """The fields of the paper's Table 3, from one execution, as in its Table 5."""

    def fields(self, name, *options):
        source = PROGRAMS.parent / "torn" / (name + ".cc")
        self.compile("-O0", "-g", "-I", PROGRAMS, source, "-o", name, tool="perdure-c++")
        self.run_tool("model", "--quiet", "--pm", "pool", "--json", name + ".json", *options, "./" + name, "pool",
                      status=None)
        self.result = self.load(name + ".json")
        found = [f for f in self.result["findings"] if f["kind"] == "torn-store"]
        self.assertTrue(all(f["member"]["file"] == name + ".cc" for f in found))
        return {f["member"]["name"] + " in " + f["member"]["type"].split("::")[-1].split()[-1] for f in found}

    def test_segments(self):
        self.assertEqual(self.fields("segments", "--random", 1), {"key in Pair", "value in Pair"})
        self.assertEqual(self.result["stats"]["executions"], 2)  # the run, and one recovery
        self.assertEqual(self.fields("segments", "--random", 1, "--prefix", "off"), set())
        self.assertEqual(self.fields("segments"), {"key in Pair", "value in Pair"})

    def test_sorted_pages(self):
        published = {"last_index in header", "switch_counter in header", "key in entry", "ptr in entry",
                     "root in tree", "sibling_ptr in header"}
        self.assertEqual(self.fields("sorted_pages", "--random", 1), published)
        self.assertEqual(self.fields("sorted_pages", "--random", 1, "--prefix", "off"), set())
        self.assertEqual(self.fields("sorted_pages"), published)

    def test_plain_volatile(self):
        self.write("flag.c", """
            #include "pm.h"
            #include <perdure/perdure.h>
            struct pm { volatile uint64_t flag; };
            int main(int argc, char **argv)
            {
                struct pm *pm = pm_map(argv);
                if (perdure_stage() > 0)
                    return pm->flag > 1;
                pm->flag = argc;
                PERSIST((void *)&pm->flag);
                return 0;
            }""")
        self.compile("-g", "-I", PROGRAMS, "flag.c", "-o", "flag")
        for options, kinds in (((), set()), (("--volatile", "plain"), {"torn-store", "cross-failure-race"}),
                               (("--model", "eadr"), set()),
                               (("--model", "eadr", "--volatile", "plain"), {"torn-store"})):
            self.run_tool("check", "--quiet", "--pm", "pool", "--json", "result.json", *options, "./flag", "pool",
                          status=None)
            self.assertEqual({f["kind"] for f in self.load()["findings"]}, kinds, options)


if __name__ == "__main__":
    unittest.main()
