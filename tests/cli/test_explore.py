# SPDX-License-Identifier: BSD-3-Clause
"""perdure explore: paths counted against enumeration, operations against the processor, inputs against native runs."""

import json
import os
import re
import signal
import subprocess
import time
import unittest

from support import PROGRAMS, TOOLS, TestCase

SYMBOLIC = PROGRAMS.parent / "symbolic"
LEVELS = ("-O0", "-O2") if not os.environ.get("PERDURE_EXPLORE_LONG") else ("-O0", "-O1", "-O2", "-O3", "-Os")
SEARCHES = ("pm", "coverage", "dfs", "bfs", "random")


def marks(source):
    """Kinds and lines that the program names."""
    return {(kind, number) for number, line in enumerate(source.read_text().splitlines(), 1)
            for kind in re.findall(r"/\* finds: ([\w-]+) \*/", line)}


class Explore(TestCase):
    def build(self, source, name, *flags, compiler="perdure-cc"):
        subprocess.run([TOOLS / compiler, "--symbolic", "-g", "-I", PROGRAMS, *flags, source, "-o", name],
                       cwd=self.directory, check=True)

    def explore(self, *words, status=None):
        result = subprocess.run([TOOLS / "perdure", "explore", "--pm", "pool", "--json", "result", *words],
                                cwd=self.directory, capture_output=True, text=True, timeout=120)
        if status is not None:
            self.assertEqual(result.returncode, status, result.stderr)
        return result

    def found(self, result=None):
        findings = (result or self.load())["findings"]
        return {(f["kind"], f["sites"][0]["line"]) for f in findings if f["confirmed"]}

    def load(self):
        return json.loads((self.directory / "result").read_text())

    def test_paths_as_enumerated(self):
        for source in sorted((SYMBOLIC / "programs").glob("*.c")):
            size = re.search(r"define BYTES (\d+)", source.read_text())[1]
            subprocess.run(["gcc", "-O2", "-DENUMERATE", source, "-o", "enumerate"], cwd=self.directory, check=True)
            paths = int(subprocess.run(["./enumerate"], cwd=self.directory, capture_output=True, check=True).stdout)
            for level in LEVELS:
                with self.subTest(program=source.stem, level=level):
                    self.build(source, "program", level)
                    self.explore("--sym-stdin", size, "--inputs", "none", "./program", "pool", status=1)
                    result = self.load()
                    self.assertEqual((result["stats"]["paths"], result["complete"]), (paths, True), result["limits"])
                    self.assertEqual(self.found(result), marks(source))

    def test_findings_are_there_natively(self):
        for name in ("magic", "checksum", "length", "arithmetic"):
            with self.subTest(program=name):
                source = SYMBOLIC / "programs" / (name + ".c")
                size = re.search(r"define BYTES (\d+)", source.read_text())[1]
                self.build(source, "program", "-O2")
                self.explore("--sym-stdin", size, "./program", "pool", status=1)
                for finding in self.load()["findings"]:
                    self.run_tool("replay", finding["id"], status=1)
                    (self.directory / "pool").unlink()

    def test_every_search_finds_everything(self):
        source = SYMBOLIC / "programs" / "journal.c"
        self.build(source, "program", "-O2")
        for search in SEARCHES:
            with self.subTest(search=search):
                self.explore("--search", search, "--sym-stdin", "4", "--inputs", "none", "./program", "pool", status=1)
                self.assertEqual((self.load()["stats"]["paths"], self.found()), (341, marks(source)))

    def test_operations(self):
        source = SYMBOLIC / "operations.c"
        for level in LEVELS:
            with self.subTest(level=level):
                self.build(source, "operations", level)
                self.explore("--search", "dfs", "--timeout", "60", "./operations", "pool", status=0)
                self.assertEqual(self.load()["stats"]["paths"], 1)

    def test_operations_that_are_wrong(self):
        source = SYMBOLIC / "operations.c"
        self.build(source, "operations", "-DWRONG")
        self.explore("--search", "dfs", "--timeout", "60", "--inputs", "none", "./operations", "pool")
        text = source.read_text()
        per_type = re.findall(r"test_(\w+)_##type\(\)", text[text.index("#define ALL"):])
        types = re.findall(r"\tALL\((\w+)\);", text)
        names = {"%s_%s" % (name, kind) for name in per_type for kind in types}
        names |= set(re.findall(r"\ttest_(\w+)\(\);", text[text.index("int main"):]))
        names -= {"widened_uint64_t", "widened_int64_t"}  # there is nothing wider
        self.assertEqual({f["message"] for f in self.load()["findings"]}, names)

    def test_corners(self):
        source = SYMBOLIC / "corners.c"
        text = source.read_text()
        crashes = {(int(value), number) for number, line in enumerate(text.splitlines(), 1)
                   for value in re.findall(r"/\* crashes: (\d+) \*/", line)}
        for level in LEVELS:
            with self.subTest(level=level):
                self.build(source, "corners", level)
                self.explore("--sym-stdin", "2", "--inputs", "none", "./corners", "pool", status=1)
                result = self.load()
                self.assertEqual({f["message"] for f in result["findings"] if f["confirmed"]},
                                 {"yes: " + name for name in re.findall(r'YES\("(.*?)"\)', text)})
                self.assertEqual([f["message"] for f in result["findings"] if f["message"].startswith("no")], [])
                self.assertEqual({(int(c["input"][0]["hex"][2:], 16), c["line"]) for c in result["crashes"]}, crashes)

    def test_inputs_of_all_kinds(self):
        self.write("inputs.c", r"""
            #include "pm.h"
            int main(int argc, char **argv)
            {
                long *pm = pm_map(argv);
                char line[8] = "", content[8] = "";
                const char *value = getenv("SETTING");
                FILE *file = fopen("config", "r");
                if (argc != 4 || !value || !file)
                    return 1;
                if (strcmp(argv[2], "open") == 0 && argv[3][0] == '7')
                    pm[0] = 1; /* argument */
                if (fgets(line, sizeof(line), stdin) && strncmp(line, "go\n", 3) == 0)
                    pm[8] = 1; /* standard input */
                if (strchr(value, '!') && strlen(value) == 3)
                    pm[16] = 1; /* variable */
                if (fread(content, 1, 4, file) == 4 && memcmp(content, "\1\2\3\4", 4) == 0)
                    pm[24] = 1; /* file */
                return 0;
            }""")
        self.build("inputs.c", "inputs", "-O1")
        self.explore("--sym-args", "2x5", "--sym-stdin", "4", "--sym-env", "SETTING=4", "--sym-file", "config=4",
                     "--max-time", "60", "./inputs", "pool", status=1)
        result = self.load()
        lines = (self.directory / "inputs.c").read_text().splitlines()
        self.assertEqual({re.search(r"/\* (.*) \*/", lines[f["sites"][0]["line"] - 1])[1] for f in result["findings"]},
                         {"argument", "standard input", "variable", "file"})
        self.assertFalse((self.directory / "pool").exists() or (self.directory / "config").exists())
        for finding in result["findings"]:
            (self.directory / "config").write_text("mine")
            replayed = self.run_tool("replay", finding["id"], status=1)
            self.assertIn("is there again", replayed.stderr)
            self.assertEqual((self.directory / "config").read_text(), "mine")
            (self.directory / "pool").unlink()

    def test_named_and_assumed(self):
        self.write("named.c", r"""
            #include <perdure/perdure.h>
            #include "pm.h"
            int main(int argc, char **argv)
            {
                unsigned *pm = pm_map(argv), x = 1, y = 2;
                perdure_symbolic(&x, sizeof(x), "x");
                perdure_symbolic(&y, sizeof(y), "y");
                perdure_assume(x > 1000 && y < x);
                if (x + y == 0x12345678)
                    pm[0] = argc; /* reached */
                if (x <= 1000 || y >= x)
                    pm[16] = argc; /* not reached */
                return 0;
            }""")
        self.build("named.c", "named", "-O2")
        self.explore("./named", "pool", status=1)
        self.assertEqual(self.found(), {("missing-flush", 11)})
        self.run_tool("replay", self.load()["findings"][0]["id"], status=1)

    def test_symbolic_pm(self):
        self.write("pool.c", r"""
            #include "pm.h"
            int main(int argc, char **argv)
            {
                unsigned char *pm = pm_map(argv);
                if (pm[0] == 'P' && pm[1] + pm[2] == 300)
                    pm[64] = 1; /* reached */
                return argc == 9;
            }""")
        self.build("pool.c", "program", "-O2")
        self.explore("--sym-file", "pool=4096", "./program", "pool", status=1)
        self.assertEqual(self.found(), {("missing-flush", 7)})

    def test_cxx(self):
        self.write("cxx.cc", r"""
            #include <map>
            #include <memory>
            #include <stdexcept>
            #include <vector>
            #include "pm.h"
            struct command {
                virtual ~command() = default;
                virtual void run(long *pm) = 0;
            };
            struct quiet : command {
                void run(long *) override {}
            };
            struct loud : command {
                void run(long *pm) override { pm[8] = 1; } // reached
            };
            static int parse(unsigned char c)
            {
                if (c > 9)
                    throw std::runtime_error("no digit");
                return c;
            }
            int main(int argc, char **argv)
            {
                long *pm = static_cast<long *>(pm_map(argv));
                unsigned char in[3];
                std::map<int, std::unique_ptr<command>> commands;
                std::vector<int> seen;
                if (read(0, in, 3) != 3)
                    return 1;
                commands[3] = std::make_unique<quiet>();
                commands[7] = std::make_unique<loud>();
                try {
                    for (unsigned char c : in)
                        seen.push_back(parse(c));
                } catch (const std::runtime_error &) {
                    return 2;
                }
                auto at = commands.find(seen[0] + seen[1] * seen[2]);
                if (at != commands.end())
                    at->second->run(pm);
                return argc == 9;
            }""")
        self.build("cxx.cc", "program", "-O1", compiler="perdure-c++")
        self.explore("--sym-stdin", "3", "--max-time", "60", "./program", "pool", status=1)
        self.assertEqual(self.found(), {("missing-flush", 15)})

    def test_plugins_hear_one_path_after_the_other(self):
        """After the paper's Listing 4: the header becomes valid before what it is about."""
        self.write("order.c", r"""
            #include <perdure/oracle.h>
            static unsigned stores; /* of this path alone */
            static void event(void *self, const struct perdure_host *host, const struct perdure_event *event)
            {
                (void)self;
                if (event->kind != PERDURE_EVENT_STORE)
                    return;
                stores++;
                if (event->address % 4096 == 0 && host->persistence(host, event->address + 64, 8) != PERDURE_PERSISTENT)
                    host->report(host, &(struct perdure_report){ .message = "header before pool",
                                 .address = event->address, .size = event->size, .stack = event->stack });
                if (stores > 2)
                    host->report(host, &(struct perdure_report){ .message = "paths are mixed up",
                                 .address = event->address, .size = event->size, .stack = event->stack });
            }
            const struct perdure_oracle perdure_oracle = {
                .abi = PERDURE_ORACLE_ABI, .name = "order", .event = event };""")
        self.write("create.c", r"""
            #include "pm.h"
            int main(int argc, char **argv)
            {
                long *header = pm_map(argv), *pool = header + 8;
                unsigned char in[3];
                if (read(0, in, 3) != 3)
                    return 1;
                *pool = in[0];
                if (in[0] + in[1] != 77 || in[2] > 3)
                    PERSIST(pool);
                *header = 1; /* wrong */
                PERSIST(header);
                if (in[0] + in[1] == 77)
                    CLWB(pool);
                SFENCE();
                return argc == 9;
            }""")
        subprocess.run(["gcc", "-shared", "-fPIC", "-I", PROGRAMS.parent.parent / "include", "order.c", "-o", "order.so"],
                       cwd=self.directory, check=True)
        self.build("create.c", "create", "-O1")
        self.explore("--plugin", "./order.so", "--disable", "redundant-flush", "--disable", "redundant-fence",
                     "--sym-stdin", "3", "./create", "pool", status=1)
        findings = self.load()["findings"]
        self.assertEqual([(f["message"], f["sites"][0]["line"], f["confirmed"]) for f in findings],
                         [("header before pool", 12, True)])
        value = bytes.fromhex(findings[0]["input"][0]["hex"])
        self.assertEqual((value[0] + value[1], value[2] <= 3), (77, True))
        self.run_tool("replay", findings[0]["id"], status=1)

    def test_transactions(self):
        self.write("tx.c", r"""
            #include <libpmemobj.h>
            #include <unistd.h>
            struct root { long a[8], b[8]; };
            int main(int argc, char **argv)
            {
                PMEMobjpool *pool = pmemobj_create(argv[1], "x", PMEMOBJ_MIN_POOL, 0600);
                unsigned char in[2];
                struct root *root;
                if (!pool || read(0, in, 2) != 2)
                    return 1;
                root = pmemobj_direct(pmemobj_root(pool, sizeof(*root)));
                TX_BEGIN(pool) {
                    pmemobj_tx_add_range_direct(root->a, sizeof(root->a));
                    root->a[in[0] & 7] = 1;
                    if ((in[0] ^ in[1]) == 0x5a)
                        pmemobj_tx_add_range_direct(&root->a[in[0] & 7], 8); /* twice */
                    if (in[1] == 200)
                        root->b[1] = 2; /* not logged */
                } TX_END
                pmemobj_close(pool);
                return argc == 9;
            }""")
        self.build("tx.c", "tx", "-O1", "-lpmemobj")
        self.explore("--disable", "redundant-flush", "--sym-stdin", "2", "--max-time", "60", "./tx", "pool", status=1)
        self.assertEqual(self.found(), {("duplicate-tx-add", 17), ("store-outside-tx", 19)})

    def test_crashing_paths(self):
        self.write("crash.c", r"""
            #include <stdlib.h>
            #include "pm.h"
            int main(int argc, char **argv)
            {
                long *pm = pm_map(argv);
                unsigned char in[2];
                if (read(0, in, 2) != 2)
                    return 1;
                *pm = 1;
                PERSIST(pm);
                if (in[0] == 7)
                    abort();
                return 100 / (in[1] - 5);
            }""")
        self.build("crash.c", "crash", "-O2")
        result = self.explore("--sym-stdin", "2", "./crash", "pool", status=0)
        crashes = {(c["signal"], c["line"], c["input"][0]["hex"][0:4]) for c in self.load()["crashes"]}
        self.assertEqual({(number, line) for number, line, _ in crashes}, {(signal.SIGABRT, 13), (signal.SIGFPE, 14)})
        self.assertIn("was ended by SIGABRT at crash.c:13", result.stderr)

    def test_budgets_and_leftovers(self):
        self.write("endless.c", r"""
            #include "pm.h"
            int main(int argc, char **argv)
            {
                long *pm = pm_map(argv);
                unsigned char in[64];
                volatile unsigned sum = 0;
                if (read(0, in, 64) != 64)
                    return 1;
                pm[0] = argc; /* lost */
                for (int i = 0; i < 64; i++)
                    if (in[i] > 100)
                        sum += in[i];
                if (in[0] == 9)
                    for (;;)
                        sum++;
                return 0;
            }""")
        self.build("endless.c", "endless", "-O1")
        started = time.time()
        self.explore("--max-time", "2", "--sym-stdin", "64", "./endless", "pool", status=1)
        self.assertLess(time.time() - started, 20)
        result = self.load()
        self.assertFalse(result["complete"])
        self.assertEqual(self.found(result), {("missing-flush", 10)})
        process = subprocess.Popen([TOOLS / "perdure", "explore", "--quiet", "--pm", "pool", "--sym-stdin", "64",
                                    "./endless", "pool"], cwd=self.directory)
        time.sleep(1)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=20), 1)
        self.assertEqual(subprocess.run(["pgrep", "-f", str(self.directory)], capture_output=True).stdout, b"")
        source = SYMBOLIC / "programs" / "journal.c"
        self.build(source, "program", "-O2")
        self.explore("--max-states", "2", "--sym-stdin", "4", "--inputs", "none", "./program", "pool")
        result = self.load()
        self.assertLess(result["stats"]["paths"], 341)
        self.assertTrue(any("--max-states" in limit for limit in result["limits"]), result["limits"])

    def test_output_and_hard_questions(self):
        self.write("hard.c", r"""
            #include <perdure/perdure.h>
            #include "pm.h"
            int main(int argc, char **argv)
            {
                unsigned long *pm = pm_map(argv), x, y;
                perdure_symbolic(&x, sizeof(x), "x");
                perdure_symbolic(&y, sizeof(y), "y");
                *pm = argc;
                PERSIST(pm);
                puts("hello");
                if (x > 1 && y > 1 && x < 0xffffffff && y < 0xffffffff && x * y * (x ^ y) == 0xfffffffafffffff1)
                    puts("factors");
                return 0;
            }""")
        self.build("hard.c", "hard", "-O1")
        silent = self.explore("--solver-timeout", "1", "./hard", "pool", status=0)
        self.assertTrue(any("--solver-timeout" in limit for limit in self.load()["limits"]), self.load()["limits"])
        shown = self.explore("--solver-timeout", "1", "--show-output", "./hard", "pool", status=0)
        self.assertEqual(("hello" in silent.stdout, "hello" in shown.stdout), (False, True))

    def test_states_as_inputs(self):
        """With room for one process, everything else is run again from its input."""
        source = SYMBOLIC / "programs" / "parser.c"
        self.build(source, "program", "-O2")
        self.explore("--max-memory", "4", "--sym-stdin", "4", "--inputs", "none", "./program", "pool", status=1)
        stats = self.load()["stats"]
        self.assertEqual((stats["paths"], self.found()), (29, marks(source)))
        self.assertGreater(stats["states_reexecuted"], 10)

    def test_not_symbolic(self):
        self.write("plain.c", '#include "pm.h"\nint main(int argc, char **argv) { *(int *)pm_map(argv) = argc; return 0; }')
        subprocess.run([TOOLS / "perdure-cc", "-g", "-I", PROGRAMS, "plain.c", "-o", "plain"], cwd=self.directory,
                       check=True)
        result = self.explore("--sym-args", "1", "./plain", "pool", status=1)
        self.assertIn("perdure-cc --symbolic", result.stderr)
        self.explore("--sym-args", "x", "./plain", "pool", status=2)
        self.explore("--search", "best", "./plain", "pool", status=2)
        self.assertEqual(subprocess.run([TOOLS / "perdure", "replay", "P99"], cwd=self.directory,
                                        capture_output=True).returncode, 3)


if __name__ == "__main__":
    unittest.main()
