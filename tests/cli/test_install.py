# SPDX-License-Identifier: BSD-3-Clause
"""An installed tree works from anywhere; the set-up script says what it cannot do."""

import os
import pathlib
import shutil
import subprocess
import unittest

import support
from support import TestCase

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class Install(TestCase):
    def test_installed_tree_can_be_moved(self):
        subprocess.run(["cmake", "--install", support.TOOLS.parent, "--prefix", self.directory / "first"],
                       check=True, capture_output=True)
        shutil.move(self.directory / "first", self.directory / "second tree")
        tools, support.TOOLS = support.TOOLS, self.directory / "second tree" / "bin"
        try:
            self.build_ends()
            self.run_tool("run", "--pm", "pool", "./ends", "pool", "lose", status=1)
            self.write("empty.cc", "int main() {}")
            self.compile("empty.cc", tool="perdure-c++")
        finally:
            support.TOOLS = tools


class Bootstrap(TestCase):
    def fake(self, name, text):
        os.chmod(self.write("bin/" + name, "#!/bin/sh\n" + text), 0o700)

    def run_bootstrap(self):
        return subprocess.run([ROOT / "scripts" / "bootstrap"], capture_output=True, text=True,
                              env={"PATH": "%s:/usr/bin:/bin" % (self.directory / "bin")})

    def test_all_there(self):
        self.fake("dpkg-query", "echo installed")
        self.fake("apt-get", "exit 1")
        result = self.run_bootstrap()
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))

    def test_missing_without_rights(self):
        self.fake("dpkg-query", 'case "$*" in *jansson*) exit 1;; *) echo installed;; esac')
        self.fake("id", "echo 1000")
        self.fake("sudo", "exit 1")
        result = self.run_bootstrap()
        self.assertEqual(result.returncode, 3)
        self.assertIn("apt-get install libjansson-dev", result.stderr)

    def test_missing_with_rights(self):
        self.fake("dpkg-query", 'case "$*" in *jansson*) exit 1;; *) echo installed;; esac')
        self.fake("id", "echo 0")
        self.fake("apt-get", 'echo "$*" >> %s/calls' % self.directory)
        self.assertEqual(self.run_bootstrap().returncode, 0)
        self.assertIn("libjansson-dev", (self.directory / "calls").read_text())


if __name__ == "__main__":
    unittest.main()
