# SPDX-License-Identifier: BSD-3-Clause
"""Threads as fibers: programs do the same as with real threads; what a schedule finds is found again."""

import subprocess
import unittest

from support import PROGRAMS, TestCase

THREADS = PROGRAMS.parent / "threads"


class Conformance(TestCase):
    """Each program of tests/threads prints the same natively and under every policy."""

    POLICIES = [[], ["--schedule", "random", "--seed", "7"], ["--schedule", "pct", "--seed", "5"],
                ["--schedule", "all", "--preemptions", "0", "--schedules", "2"]]

    def compare(self, source, *arguments):
        self.compile(*arguments, "-g", THREADS / source, "-o", "program", "-pthread",
                     tool="perdure-c++" if source.endswith("cpp") else "perdure-cc")
        native = subprocess.run(["./program"], cwd=self.directory, capture_output=True, text=True,
                                timeout=60)
        self.assertEqual(native.returncode, 0)
        (self.directory / "pool").unlink()
        for policy in self.POLICIES:
            with self.subTest(policy=policy):
                result = self.run_tool("check", "--pm", "pool", "--max-crash-points", 2, "--json",
                                       "result.json", *policy, "./program")
                self.assertEqual(result.stdout, native.stdout)
                self.assertEqual(self.load()["findings"], [])

    def test_mutexes(self):
        self.compare("mutexes.c")

    def test_conditions(self):
        self.compare("conditions.c")

    def test_locks(self):
        self.compare("locks.c", "-O2")

    def test_ends(self):
        self.compare("ends.c")

    def test_c11(self):
        self.compare("c11.c", "-O1")

    def test_spinning(self):
        self.compare("spinning.c", "-O2")

    def test_blocking(self):
        self.compare("blocking.c")

    def test_forking(self):
        self.compare("forking.c", "-O1")

    def test_many(self):
        self.compare("many.c")

    def test_standard(self):
        self.compare("standard.cpp", "-std=c++20", "-O1")


if __name__ == "__main__":
    unittest.main()
