# SPDX-License-Identifier: BSD-3-Clause
"""The tutorial, as a newcomer would go through it: every command is run, and every output is real."""

import os
import pathlib
import re
import subprocess
import sys
import unittest

from support import TOOLS, TestCase

TUTORIAL = pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "tutorial.md"


def blocks(text):
    """Each block of code: its language, its name, its lines."""
    for match in re.finditer(r"^```(\w+) ?([^\n]*)\n(.*?)^```$", text, re.M | re.S):
        yield match


def commands(block):
    """Commands, each with the output that is written below it."""
    parts = re.split(r"^\$ (.*)\n", block, flags=re.M)
    return list(zip(parts[1::2], parts[2::2]))


def run(command, directory):
    environment = dict(os.environ, PATH="%s:%s" % (TOOLS, os.environ["PATH"]), LC_ALL="C")
    result = subprocess.run(["bash", "-c", command], cwd=directory, env=environment, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, timeout=120, check=False)
    return result.stdout


def plain(text, directory):
    """Without what is different each time."""
    text = text.replace(str(directory) + "/", "")
    text = re.sub(r"^    (at|by) \S+ \((\./|/\S*/libc|/\S*/ld-).*\n", "", text, flags=re.M)  # libc, if its sources are known
    text = re.sub(r"^bash: line 1: .*\n", "", text, flags=re.M)
    return re.sub(r"\d+\.\d s\b", "0.0 s", text)


def without_counts(text):
    """How many recoveries were known already depends on which of them ended first."""
    return re.sub(r"\d+ executions, \d+ memo hits", "executions", text).split("\n")


def fill_in(directory):
    """The tutorial with what its commands print now."""
    text = TUTORIAL.read_text()

    def replace(match):
        language, name, block = match.groups()
        if language == "c":
            (directory / name).write_text(block)
            return match[0]
        return "```console\n" + "".join("$ %s\n%s" % (command, plain(run(command, directory), directory))
                                        for command, _ in commands(block)) + "```"

    return re.sub(r"^```(\w+) ?([^\n]*)\n(.*?)^```$", replace, text, flags=re.M | re.S)


class Tutorial(TestCase):
    def test_everything_is_as_it_says(self):
        self.maxDiff = None
        ran = 0
        for match in blocks(TUTORIAL.read_text()):
            language, name, block = match.groups()
            if language == "c":
                (self.directory / name).write_text(block)
                continue
            for command, expected in commands(block):
                output = plain(run(command, self.directory), self.directory)
                self.assertEqual(without_counts(output), without_counts(expected), command)
                ran += 1
        self.assertGreater(ran, 12)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--fill-in"]:  # after a change of what is printed: look at the difference
        TUTORIAL.write_text(fill_in(pathlib.Path(sys.argv[2])))
    else:
        unittest.main()
