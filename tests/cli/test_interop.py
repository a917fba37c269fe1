# SPDX-License-Identifier: BSD-3-Clause
"""pmemcheck's store logs, and pmreorder's way to call checkers."""

import json
import re
import subprocess
import unittest

from support import PROGRAMS, TOOLS, TestCase
from test_explore_crash import LOG, READS


class Interop(TestCase):
    def build(self):
        (self.directory / "log.c").write_text(LOG.replace("READ;", READS["stdin"] + ";"))
        subprocess.run([TOOLS / "perdure-cc", "-g", "-O1", "-I", PROGRAMS.parent.parent / "include", "log.c", "-o", "log"],
                       cwd=self.directory, check=True)

    def check(self, *words, given=b"add!"):
        return subprocess.run([TOOLS / "perdure", "check", "--quiet", "--pm", "pool", *words, "./log"], cwd=self.directory,
                              input=given, capture_output=True, check=False)

    def test_export_and_import(self):
        self.build()
        self.check("--recover", "./log recover", "--store-log", "store.log")
        text = (self.directory / "store.log").read_text()
        self.assertRegex(text, r"^START\|REGISTER_FILE;.*/pool;0x\w+;0x\w+;0x0\|STORE;0x\w+;0x4d;0x8\|STORE;0x\w+;0x1;0x8\|FLUSH;0x\w+;0x40\|FENCE")
        self.assertTrue(text.endswith("|STOP\n"))
        result = self.run_tool("report", "--import-pmemcheck", "store.log", status=1)
        self.assertEqual(result.stdout.count("missing-flush"), 1)
        self.check("--recover", "./log recover", "--store-log", "store.log", given=b"add ")
        self.assertEqual(self.run_tool("report", "--import-pmemcheck", "store.log", status=0).stdout, "")

    def test_log_of_pmemcheck(self):
        (self.directory / "log").write_text(
            "==7== pmemcheck-1.0, a simple persistent store checker\n"
            "==7== START|STORE;0x4000;0x1;0x8|FLUSH;0x4000;0x40|FENCE|STORE;0x4008;0x2;0x4|FLUSH;0x4000;0x40|STORE;0x4080;0x3;0x8|"
            "FLUSH;0x4040;0x40|STOP\n==7== Number of stores not made persistent: 2\n")
        self.run_tool("report", "--import-pmemcheck", "log", "--json", "result.json", "--html", "report.html", status=1)
        result = json.loads((self.directory / "result.json").read_text())
        self.assertEqual([(f["kind"], f["address"]) for f in result["findings"]],
                         [("redundant-flush", "0x4040"), ("missing-fence", "0x4008"), ("missing-flush", "0x4080")])
        self.assertEqual((result["stats"]["stores"], result["stats"]["fences"]), (3, 1))
        self.assertTrue((self.directory / "report.html").exists())
        (self.directory / "other").write_text("nothing of it")
        self.run_tool("report", "--import-pmemcheck", "other", status=3)
        self.run_tool("report", "--import-pmemcheck", "missing", status=3)

    def test_checkers_of_pmreorder(self):
        """They are given the file as their last argument."""
        self.build()
        checker = self.directory / "checker"
        checker.write_text("#!/usr/bin/env python3\nimport sys, struct\ndata = open(sys.argv[-1], 'rb').read()\n"
                           "assert sys.argv[1] == 'mode'\nif len(data) < 72: sys.exit(0)\ncount, sum = struct.unpack_from('Q', data)[0], struct.unpack_from('Q', data, 64)[0]\n"
                           "sys.exit(1 if count and sum != 77 else 0)\n")
        checker.chmod(0o755)
        for words in (["--checker", "./checker mode"], ["--checker", "./checker mode pool"]):
            with self.subTest(words=words):
                self.assertEqual(self.check(*words).returncode, 1)
                self.assertEqual(self.check(*words, given=b"add ").returncode, 0)


if __name__ == "__main__":
    unittest.main()
