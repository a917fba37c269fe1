# SPDX-License-Identifier: BSD-3-Clause
"""Plug-in oracles: the example, what a plug-in can ask, and plug-ins that misbehave."""

import pathlib
import subprocess
import unittest
import xml.etree.ElementTree

from support import PROGRAMS, TOOLS, TestCase

EXAMPLE = PROGRAMS.parent.parent / "examples" / "plugins" / "duplicate_add.c"

# Says at each store what it knows of it, and of the store before.
CURIOUS = r"""
#include <perdure/oracle.h>
#include <stdio.h>
static uint64_t last;
static void event(void *self, const struct perdure_host *host, const struct perdure_event *event)
{
    static const char *const states[] = { "persistent", "flushed", "dirty" };
    struct perdure_frame frame = { 0 };
    struct perdure_type type = { 0 };
    char text[200];
    (void)self;
    if (event->kind != PERDURE_EVENT_STORE)
        return;
    host->symbol(host, event->stack, 0, &frame);
    for (unsigned level = 0; host->type(host, event, level, &type); level++)
        ;
    snprintf(text, sizeof(text), "%s:%u %s.%s+%lu of %lu tx %u logged %d before %s", frame.function,
             frame.line, type.name, type.field, (unsigned long)type.offset, (unsigned long)type.size,
             host->transactions(host, event->thread),
             host->is_logged(host, event->thread, event->address, event->size),
             last ? states[host->persistence(host, last, 8)] : "none");
    last = event->address;
    host->report(host, &(struct perdure_report){ .message = text, .address = event->address,
                 .size = event->size, .stack = event->stack });
}
const struct perdure_oracle perdure_oracle = {
    .abi = PERDURE_ORACLE_ABI, .name = "curious", .event = event };
"""

PROGRAM = r"""
#include "pool.h"
int main(int argc, char **argv)
{
    PMEMobjpool *pool = pool_create(argv[1]);
    struct root *root = pool_root(pool);
    root->count = argc;
    pmemobj_flush(pool, &root->count, 8);
    root->total = argc;
    pmemobj_drain(pool);
    root->inline_node.key = 1;
    TX_BEGIN(pool) {
        TX_ADD_DIRECT(&root->first);
        root->first.off = 0;
    } TX_END
    pmemobj_persist(pool, root, sizeof(*root));
    pmemobj_close(pool);
    return 0;
}
"""


class Plugins(TestCase):
    def build_plugin(self, source, name="plugin"):
        self.write(name + ".c", source)
        include = TOOLS.parent / "include"
        subprocess.run(["gcc", "-shared", "-fPIC", "-Wall", "-Werror", "-I", include, name + ".c", "-o",
                        name + ".so"], cwd=self.directory, check=True)

    def build_program(self, path):
        self.compile("-O1", "-I", PROGRAMS, path, "-o", "main", "-lpmemobj")

    def test_example_finds_what_the_built_in_rule_finds(self):
        self.build_plugin(EXAMPLE.read_text())
        for name in ("twice", "overlap", "nested"):
            self.build_program(PROGRAMS / "duplicate-tx-add" / (name + ".c"))
            self.run_tool("run", "--plugin", "./plugin.so", "--json", "result.json", "./main", "pool",
                          status=1)
            (self.directory / "pool").unlink()
            found = {}
            for f in self.load()["findings"]:
                places = tuple((s["role"], s["line"]) for s in f["sites"])
                found.setdefault(f["kind"], set()).add(places)
                self.assertEqual(f["severity"], "performance")
                self.assertEqual(f["oracle"], "duplicate-add" if f["kind"] == "custom" else None)
            self.assertEqual(found["custom"], found["duplicate-tx-add"])

    def test_silent_where_nothing_is_wrong(self):
        self.build_plugin(EXAMPLE.read_text())
        self.compile("-O1", "-DFIXED", "-I", PROGRAMS, PROGRAMS / "duplicate-tx-add" / "nested.c", "-o",
                     "main", "-lpmemobj")
        self.run_tool("run", "--plugin", "plugin.so", "./main", "pool", status=0)

    def test_questions(self):
        self.write("program.c", PROGRAM)
        self.build_program("program.c")
        self.build_plugin(CURIOUS)
        self.run_tool("run", "--disable", "redundant-flush", "--plugin", "./plugin.so", "--json",
                      "result.json", "--no-patch", "libpmem*", "./main", "pool", status=1)
        said = sorted(f["message"] for f in self.load()["findings"] if f["kind"] == "custom")
        self.assertEqual(said, [
            "main:11 struct root.inline_node.key+144 of 224 tx 0 logged 0 before dirty",
            "main:14 struct root.first.off+136 of 224 tx 1 logged 1 before dirty",
            "main:7 struct root.count+0 of 224 tx 0 logged 0 before none",
            "main:9 struct root.total+64 of 224 tx 0 logged 0 before flushed",
        ])

    def test_a_plugin_that_crashes_costs_its_own_findings_only(self):
        self.write("program.c", PROGRAM.replace("pmemobj_persist(pool, root, sizeof(*root));", ""))
        self.build_program("program.c")
        self.build_plugin(CURIOUS.replace("(void)self;", "*(volatile int *)self = 1;"))
        result = self.run_tool("run", "--plugin", "./plugin.so", "--json", "result.json", "./main",
                               "pool", status=1)
        self.assertIn("the plug-in curious ended early", " ".join(self.load()["limits"]))
        self.assertIn("missing-flush", result.stderr)
        self.assertEqual(self.load()["target"]["exit"], 0)

    def test_a_finding_without_a_place(self):
        self.write("program.c", PROGRAM)
        self.build_program("program.c")
        self.build_plugin(CURIOUS.replace(".stack = event->stack", ".stack = self ? 1 : 0, .role = \"<&\""))
        result = self.run_tool("run", "--plugin", "./plugin.so", "--json", "result.json", "--junit",
                               "result.xml", "--sarif", "result.sarif", "./main", "pool", status=1)
        self.assertIn("(unknown place)", result.stderr)
        xml.etree.ElementTree.parse(self.directory / "result.xml")

    def test_budget_for_plugins(self):
        self.write("program.c", PROGRAM)
        self.build_program("program.c")
        self.build_plugin(CURIOUS.replace("(void)self;", "for (;;) __asm__ volatile(\"\");"))
        self.run_tool("run", "--plugin", "./plugin.so", "--max-time", "1", "--json", "result.json",
                      "--disable", "redundant-flush", "--no-patch", "libpmem*", "./main", "pool", status=3)
        self.assertIn("the plug-in curious ended early", " ".join(self.load()["limits"]))

    def test_names_in_reports_and_suppressions(self):
        self.build_plugin(EXAMPLE.read_text())
        self.build_program(PROGRAMS / "duplicate-tx-add" / "twice.c")
        self.write("s.supp", "{\nn\nperdure:custom/duplicate-add\nfun:main\n}\n")
        self.run_tool("run", "--plugin", "./plugin.so", "--disable", "duplicate-tx-add", "--sarif",
                      "result.sarif", "--suppress", "s.supp", "./main", "pool", status=0)
        run = self.load("result.sarif")["runs"][0]
        result = run["results"][0]
        self.assertEqual(result["ruleId"], "custom/duplicate-add")
        self.assertIn("logs a range twice", run["tool"]["driver"]["rules"][result["ruleIndex"]]["help"]["text"])

    def test_what_is_no_plugin(self):
        self.build_plugin("int x;", "empty")
        self.build_plugin(CURIOUS.replace(".abi = PERDURE_ORACLE_ABI", ".abi = 99"), "future")
        self.write("text.so", "hello")
        for name, message in (("empty.so", "does not define perdure_oracle"),
                              ("future.so", "version 99"), ("text.so", "file too short"),
                              ("none.so", "no such file")):
            result = self.run_tool("run", "--plugin", name, "true", status=2)
            self.assertIn(message, result.stderr)


if __name__ == "__main__":
    unittest.main()
