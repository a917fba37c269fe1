# SPDX-License-Identifier: BSD-3-Clause
"""What other programs read: SARIF, JUnit; and what makes findings count: suppressions, baselines."""

import json
import os
import pathlib
import unittest
import xml.etree.ElementTree

import jsonschema

from support import PROGRAMS, TestCase

SCHEMA = pathlib.Path(__file__).with_name("sarif.schema.json")

# Three lost stores in two functions, one flush without a fence, one needless flush.
SOURCE = r"""
#include "pm.h"
__attribute__((noinline)) static void lose(long *p, long value)
{
    p[0] = value; /* first */
    p[8] = value; /* second */
}
__attribute__((noinline)) static void half(long *p)
{
    p[16] = 1;
    CLWB(p + 16);
}
int main(int argc, char **argv)
{
    long *p = pm_map(argv);
    lose(p, argc);
    p[32] = 1;
    PERSIST(p + 32);
    PERSIST(p + 32);
    p[40] = 1; /* third */
    half(p + 64);
    return 0;
}
"""


class Reports(TestCase):
    def setUp(self):
        super().setUp()
        self.build(SOURCE)

    def build(self, source, name="a dir/main.c"):
        self.write(name, source)
        self.compile("-O1", "-I", PROGRAMS, name, "-o", "main")

    def run_main(self, *options, status=1):
        return self.run_tool("run", "--pm", "pool", "--json", "result.json", *options, "./main",
                             "pool", status=status)

    def counted(self):
        return {(f["kind"], f["sites"][0]["line"]) for f in self.load()["findings"]
                if not f["suppressed"] and not f["baseline"]}

    # ---- SARIF ----

    def sarif(self, *options, status=1):
        self.run_main("--sarif", "out.sarif", *options, status=status)
        document = self.load("out.sarif")
        jsonschema.validate(document, json.loads(SCHEMA.read_text()))
        official = os.environ.get("PERDURE_SARIF_SCHEMA")  # the standard's own, if it is at hand
        if official:
            jsonschema.validate(document, json.loads(pathlib.Path(official).read_text()))
        return document["runs"][0]

    def test_long_names(self):
        """What templates were made with is left out of text, and kept in JSON."""
        self.write("long.cc", r"""
            #include "pm.h"
            #include <map>
            #include <string>
            #include <vector>
            template <class T, class U> struct box {
                __attribute__((noinline)) void operator<<(long value) volatile { content = value; }
                long content;
            };
            int main(int argc, char **argv)
            {
                *(box<std::map<std::string, std::vector<long>>, std::vector<std::string>> *)pm_map(argv) << 3;
                return 0;
            }""")
        self.compile("-I", PROGRAMS, "-O1", "-g", "long.cc", "-o", "long", tool="perdure-c++")
        result = self.run_tool("run", "--pm", "pool", "--json", "result.json", "./long", "pool", status=1)
        self.assertIn("at box<…>::operator<< (long.cc:7)", result.stderr)
        self.assertIn("vector", json.loads((self.directory / "result.json").read_text())["findings"][0]["sites"][0]["function"])

    def test_sarif(self):
        run = self.sarif()
        self.assertEqual(len(run["results"]), len(self.load()["findings"]))
        rules = run["tool"]["driver"]["rules"]
        for result in run["results"]:
            self.assertEqual(rules[result["ruleIndex"]]["id"], result["ruleId"])
            self.assertIn("perdureFinding/v1", result["partialFingerprints"])
            place = result["locations"][0]["physicalLocation"]
            self.assertEqual(place["artifactLocation"], {"uri": "a%20dir/main.c", "uriBaseId": "SRCROOT"})
        base = run["originalUriBaseIds"]["SRCROOT"]["uri"]
        self.assertEqual(base, self.directory.as_uri() + "/")

    def test_sarif_code_flow(self):
        for result in self.sarif()["results"]:
            steps = result["codeFlows"][0]["threadFlows"][0]["locations"]
            lines = [s["location"]["physicalLocation"]["region"]["startLine"] for s in steps]
            texts = [s["location"]["message"]["text"] for s in steps]
            if result["ruleId"] == "missing-fence":
                self.assertEqual(lines, [10, 11, 11])
                self.assertEqual(texts[0], "stored here")
                self.assertIn("no fence", texts[2])
            if result["ruleId"] == "redundant-flush":
                self.assertEqual(lines, [18, 19])
            functions = [f["location"]["logicalLocations"][0]["fullyQualifiedName"]
                         for f in steps[0]["stack"]["frames"]]
            self.assertEqual(functions[-1], "main")

    def test_sarif_without_findings(self):
        self.build(SOURCE.replace("lose(p, argc);", "").replace("half(p + 64);", "")
                   .replace("p[40] = 1;", "").replace("    PERSIST(p + 32);\n", "    PERSIST(p + 32);\n", 1)
                   .replace("PERSIST(p + 32);\n    PERSIST(p + 32);", "PERSIST(p + 32);"))
        self.assertEqual(self.sarif(status=0)["results"], [])

    # ---- JUnit ----

    def test_junit(self):
        self.run_main("--junit", "out.xml")
        suite = xml.etree.ElementTree.parse(self.directory / "out.xml").getroot()[0]
        failures = suite.findall(".//failure")
        self.assertEqual(int(suite.get("failures")), len(failures))
        self.assertEqual(int(suite.get("tests")), len(suite.findall("testcase")))
        self.assertEqual(sorted(f.get("type") for f in failures),
                         ["missing-fence", "missing-flush", "missing-flush", "missing-flush",
                          "redundant-flush"])
        self.assertIn("a dir/main.c: lose: p[0] = value;", [c.get("name") for c in suite])
        passed = [c.get("name") for c in suite if not len(c)]
        self.assertIn("redundant-fence", passed)

    # ---- suppressions ----

    def test_round_trip_silences_all(self):
        blocks = self.run_main("--gen-suppressions").stdout
        self.assertEqual(blocks.count("{\n"), 5)
        self.write("all.supp", blocks)
        result = self.run_main("--suppress", "all.supp", "--stats", status=0)
        self.assertIn("5 findings are suppressed", result.stderr)
        self.assertIn("suppression \"missing-fence in half\": 1 finding\n", result.stderr)
        self.assertTrue(all(f["suppressed"] for f in self.load()["findings"]))

    def test_each_block_silences_exactly_one(self):
        blocks = self.run_main("--gen-suppressions").stdout.split("}\n")[:-1]
        everything = self.counted()
        gone = set()
        for block in blocks:
            self.write("one.supp", block + "}\n")
            self.run_main("--suppress", "one.supp")
            missing = everything - self.counted()
            self.assertEqual(len(missing), 1, block)
            gone |= missing
        self.assertEqual(gone, everything)

    def test_generated_blocks_survive_shifted_lines(self):
        self.write("all.supp", self.run_main("--gen-suppressions").stdout)
        self.build("/* shifted */\n\n" + SOURCE)
        self.run_main("--suppress", "all.supp", status=0)

    def test_patterns(self):
        first = {("missing-flush", 5), ("missing-flush", 6)}
        everything = {("missing-flush", 5), ("missing-flush", 6), ("missing-flush", 20),
                      ("missing-fence", 10), ("redundant-flush", 19)}
        cases = [
            ("perdure:missing-flush\nfun:lose", first),
            ("perdure:missing-*\nfun:l*se\nfun:main", first),
            ("perdure:*\nfun:main", {("missing-flush", 20), ("redundant-flush", 19)}),
            ("perdure:*\n...\nfun:main", everything),
            ("perdure:*\nsrc:main.c:5", {("missing-flush", 5)}),
            ("perdure:*\nsrc:a dir/*.c", everything),
            ("perdure:*\nsrc:other.c", set()),
            ("perdure:*\nobj:*/main", everything),
            ("perdure:*\nobj:main\nsrc:*:16", first),
            ("perdure:redundant-fence\nfun:*", set()),
            ("perdure:*\nfun:lose\nfun:lose", set()),
        ]
        for text, silenced in cases:
            self.write("s.supp", "# a comment\n{\n  name\n  " + text + "\n}\n")
            self.run_main("--suppress", "s.supp", status=None)
            self.assertEqual(everything - self.counted(), silenced, text)

    def test_wrong_suppressions(self):
        cases = [("{\nn\nperdure:mising-flush\nfun:a\n}\n", "s.supp:3: mising-flush is no kind"),
                 ("{\nn\nmemcheck:Leak\n}\n", "s.supp:3: expected perdure:KIND"),
                 ("{\nn\nperdure:*\nfnu:a\n}\n", "s.supp:4: \"fnu:a\" is none of"),
                 ("{\nn\nperdure:*\nfun:a\n", "the block that starts in line 1 is not closed"),
                 ("{\nn\nperdure:*\n}\n", "s.supp:4: a block without any"),
                 ("n\n", "s.supp:1: expected a block in braces")]
        for text, message in cases:
            self.write("s.supp", text)
            result = self.run_main("--suppress", "s.supp", status=2)
            self.assertIn(message, result.stderr)
        self.assertIn("No such file", self.run_main("--suppress", "none", status=2).stderr)

    # ---- baseline ----

    def test_baseline_survives_shifted_lines(self):
        self.run_main("--json", "base.json")
        self.build("\n\n/* shifted */\n" + SOURCE)
        result = self.run_main("--baseline", "base.json", status=0)
        self.assertIn("5 findings are known from the baseline", result.stderr)
        self.assertTrue(all(f["baseline"] for f in self.load()["findings"]))

    def test_only_new_causes_fail(self):
        self.run_main("--json", "base.json")
        self.build(SOURCE.replace("p[8] = value; /* second */",
                                  "p[8] = value; /* second */\n    p[24] = value;")
                   .replace("lose(p, argc);", "lose(p, argc);\n    lose(p, argc);"))
        result = self.run_main("--baseline", "base.json")
        self.assertEqual(self.counted(), {("missing-flush", 7)})
        self.assertIn("perdure: 1 finding: 1 missing-flush", result.stderr)
        states = {(r["ruleId"], r["baselineState"]) for r in
                  self.sarif("--baseline", "base.json")["results"]}
        self.assertIn(("missing-flush", "new"), states)
        self.assertIn(("redundant-flush", "unchanged"), states)

    def test_equal_lines_are_told_apart(self):
        text = SOURCE.replace("p[40] = 1; /* third */", "p += 40;\n    *p = 1;\n    p += 40;\n")
        self.build(text.replace("half(p + 64);", "p -= 40;"))
        self.run_main("--json", "base.json")
        self.build(text.replace("half(p + 64);", "*p = 1;\n    p -= 40;"))
        self.run_main("--baseline", "base.json")
        self.assertEqual(len(self.counted()), 1)

    def test_wrong_baselines(self):
        self.write("bad.json", "{")
        self.assertIn("bad.json", self.run_main("--baseline", "bad.json", status=2).stderr)
        self.write("bad.json", "{\"version\": 7}")
        self.assertIn("no result of version 1",
                      self.run_main("--baseline", "bad.json", status=2).stderr)
        self.assertIn("none.json", self.run_main("--baseline", "none.json", status=2).stderr)


if __name__ == "__main__":
    unittest.main()
