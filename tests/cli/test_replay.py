# SPDX-License-Identifier: BSD-3-Clause
"""perdure replay of findings of check, model and explore; images of crashes; gdb."""

import json
import subprocess
import unittest

from support import PROGRAMS, TOOLS, TestCase
from test_explore_crash import LOG, READS

TIMES = 50


class Replay(TestCase):
    def setUp(self):
        super().setUp()
        (self.directory / "log.c").write_text(LOG.replace("READ;", READS["stdin"] + ";"))
        self.build("log")

    def build(self, name, *flags):
        subprocess.run([TOOLS / "perdure-cc", "-g", "-O1", "-I", PROGRAMS.parent.parent / "include", *flags, "log.c", "-o", name],
                       cwd=self.directory, check=True)

    def analyse(self, engine, *words):
        subprocess.run([TOOLS / "perdure", engine, "--quiet", "--pm", "pool", "--recover", "./log recover", "--json",
                        "result.json", *words, "./log"], cwd=self.directory, input=b"add!", check=False)
        return json.loads((self.directory / "result.json").read_text())["findings"]

    def test_same_every_time(self):
        for engine in ("check", "model"):
            findings = self.analyse(engine)
            self.assertIn("crash-symptom", {f["kind"] for f in findings})
            for finding in findings:
                with self.subTest(engine=engine, kind=finding["kind"]):
                    for _ in range(TIMES if finding["kind"] == "crash-symptom" else 1):
                        result = self.run_tool("replay", "--from", "result.json", finding["id"], status=1)
                        self.assertIn("is there again", result.stderr)

    def test_one_of_explore_every_time(self):
        self.build("log", "--symbolic")
        findings = self.analyse("explore", "--crash", "--sym-stdin", "4")
        symptom = [f for f in findings if f["kind"] == "crash-symptom"][0]
        for _ in range(TIMES):
            self.run_tool("replay", symptom["id"], status=1)

    def test_gone(self):
        finding = self.analyse("check")[0]
        source = self.directory / "log.c"
        source.write_text(source.read_text().replace("if (!quick)", ""))
        self.build("log")
        result = self.run_tool("replay", "--from", "result.json", finding["id"], status=0)
        self.assertIn("was not seen", result.stderr)

    def test_image(self):
        """What the crash leaves makes the recovery fail without any tool; what it does not, does not."""
        symptom = [f for f in self.analyse("check") if f["kind"] == "crash-symptom"][0]
        self.run_tool("replay", "--from", "result.json", "--image", "image", symptom["id"], status=0)
        self.assertFalse((self.directory / "pool").exists())
        (self.directory / "image").rename(self.directory / "pool")
        died = subprocess.run(["./log", "recover"], cwd=self.directory, capture_output=True, text=True, check=False)
        self.assertEqual(died.returncode, -6)
        self.assertIn("Assertion", died.stderr)

    def test_gdb(self):
        symptom = [f for f in self.analyse("check") if f["kind"] == "crash-symptom"][0]
        (self.directory / "pool").write_text("mine")
        result = subprocess.run([TOOLS / "perdure", "replay", "--from", "result.json", "--gdb", symptom["id"]], cwd=self.directory,
                                input="quit\n", capture_output=True, text=True, timeout=60, check=False)
        self.assertRegex(result.stdout, r"Breakpoint 1.*main .*log\.c:%d" % symptom["sites"][0]["line"])
        self.assertEqual((self.directory / "pool").read_text(), "mine")

    def test_mistakes(self):
        self.analyse("check")
        self.run_tool("replay", "--from", "result.json", "P99", status=3)
        self.run_tool("replay", "--from", "nothing.json", "P1", status=3)
        self.run_tool("replay", "--gdb", "P1", status=2)
        self.run_tool("replay", status=2)


if __name__ == "__main__":
    unittest.main()
