# SPDX-License-Identifier: BSD-3-Clause
"""perdure threads: programs whose threads act on what others have not persisted, and their fixed twins."""

import os
import pathlib
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
                    self.assertEqual(self.races(source, "--runs", "3", status=1) - pairs_wanted(source, "perhaps"), wanted)
                    self.build(compiler, source, level, "-DFIXED")
                    self.assertEqual(self.races(source, status=0), set())


if __name__ == "__main__":
    unittest.main()
